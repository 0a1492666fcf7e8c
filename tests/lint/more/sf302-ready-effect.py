# expect: SF302
import surefoot as sf
from surefoot import effects

@sf.step
def f(p: str) -> None:
    effects.write_file(p, "x")
