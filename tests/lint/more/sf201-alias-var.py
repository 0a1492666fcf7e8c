# expect: SF201
import time
import surefoot as sf

clock = time.time

@sf.step
def f(d: float) -> float:
    return d

@sf.workflow
def w() -> float:
    return f(clock())
