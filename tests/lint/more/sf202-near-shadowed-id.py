# expect: none
import surefoot as sf

@sf.workflow
def w(id: str) -> str:
    return id.upper()
