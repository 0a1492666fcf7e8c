# expect: none
import surefoot as sf

@sf.step
def f(n: int) -> int:
    n += 1
    return n
