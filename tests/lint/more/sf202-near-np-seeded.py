# expect: none
import numpy as np
import surefoot as sf

@sf.workflow
def w(seed: int) -> float:
    return float(np.random.default_rng(seed).random())
