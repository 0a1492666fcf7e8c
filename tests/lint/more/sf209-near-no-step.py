# expect: none
import surefoot as sf

@sf.step
def f(n: int) -> int:
    return n

@sf.workflow
def w(a: list) -> int:
    total = 0
    for x in set(a):
        total += len(x)
    return f(total)
