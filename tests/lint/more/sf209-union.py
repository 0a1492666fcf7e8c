# expect: SF209
import surefoot as sf

@sf.step
def f(n: str) -> str:
    return n

@sf.workflow
def w(a: set[str], b: set[str]) -> list:
    return [f(n) for n in a | b]
