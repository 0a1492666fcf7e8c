# expect: none
import time
import surefoot as sf

def stamp():
    return time.time()

@sf.effect
def e() -> float:
    return stamp()

@sf.workflow
def w() -> float:
    return e()
