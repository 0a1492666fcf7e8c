# expect: none
import surefoot as sf
@sf.step
def f(t: str) -> str:
    t = t.replace("a", "b")
    return t
