# expect: none
import surefoot as sf
@sf.step
def f(n: int) -> int:
    return n
@sf.workflow
def w() -> int:
    total = 0
    def add(n):
        nonlocal total
        total += n
    add(f(1))
    return total
