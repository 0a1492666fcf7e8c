# expect: SF209
import surefoot as sf

@sf.step
def f(n: str) -> str:
    return n

@sf.workflow
def w() -> None:
    names = {"a", "b", "c"}
    for n in names:
        f(n)
