# expect: none
import random
import surefoot as sf

@sf.workflow
def w(seed: int) -> float:
    rng = random.Random(seed)
    return rng.random()
