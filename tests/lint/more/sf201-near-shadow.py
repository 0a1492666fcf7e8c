# expect: none
import surefoot as sf
import time

@sf.workflow
def w(n: int) -> int:
    time = Stopwatch(n)
    return time.time()
