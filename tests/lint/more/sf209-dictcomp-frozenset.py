# expect: SF209
import surefoot as sf
@sf.step
def f(n: str) -> str:
    return n
@sf.workflow
def w(a: list) -> dict:
    unique = frozenset(a)
    return {x: f(x) for x in unique}
