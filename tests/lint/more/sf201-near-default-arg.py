# expect: none
import time
import surefoot as sf
BEGAN = time.time()
@sf.step
def f(x: float) -> float:
    return x
@sf.workflow
def w() -> float:
    return f(BEGAN)
