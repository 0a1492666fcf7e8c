# expect: none
import surefoot as sf

@sf.step
def f(d: dict) -> tuple:
    d["x"] = 1
    return d, 1
