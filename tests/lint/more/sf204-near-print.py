# expect: none
import surefoot as sf
@sf.workflow
def w(x: str) -> None:
    print(x)
