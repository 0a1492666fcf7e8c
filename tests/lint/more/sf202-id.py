# expect: SF202
import surefoot as sf

@sf.step
def f(n: int) -> int:
    return n

@sf.workflow
def w(x: list) -> int:
    return f(id(x))
