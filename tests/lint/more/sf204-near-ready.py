# expect: none
from surefoot import effects
import surefoot as sf

@sf.workflow
def w(p: str) -> None:
    effects.write_file(p, "x")
