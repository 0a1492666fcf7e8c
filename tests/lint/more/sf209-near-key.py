# expect: none
import surefoot as sf

@sf.step
def f(n: str) -> str:
    return n

@sf.workflow
def w(a: list) -> list:
    return sf.map(f, set(a), key=str)
