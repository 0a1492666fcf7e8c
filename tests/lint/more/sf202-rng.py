# expect: SF202
import random
import surefoot as sf

rng = random.Random()

@sf.step
def f(n: float) -> float:
    return n

@sf.workflow
def w() -> float:
    return f(rng.random())
