# expect: none
import surefoot as sf

@sf.step
def f(n: int) -> int:
    return n

@sf.workflow
def w(n: str) -> int:
    try:
        k = int(n)
    except BaseException:
        k = 0
    return f(k)
