# expect: none
import surefoot as sf

@sf.step
def f(n: str) -> str:
    return n

@sf.workflow
def w(a: list) -> None:
    names = sorted({x.lower() for x in a})
    for n in names:
        f(n)
