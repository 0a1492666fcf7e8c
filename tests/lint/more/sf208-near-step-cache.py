# expect: none
import surefoot as sf

CACHE = {}

@sf.step
def f(n: int) -> int:
    CACHE[n] = n
    return n

@sf.workflow
def w(n: int) -> int:
    return f(n)
