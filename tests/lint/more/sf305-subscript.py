# expect: SF305
import surefoot as sf

@sf.step
def f(state: dict, k: str) -> str:
    state[k] = 1
    return k
