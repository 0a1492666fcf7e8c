# expect: none
import signal
import surefoot as sf
@sf.step
def f(n: int) -> int:
    signal.alarm(3)
    return n
@sf.workflow
def w() -> int:
    return f(1)
