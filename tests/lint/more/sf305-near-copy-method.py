# expect: none
import surefoot as sf

@sf.step
def f(d: dict) -> dict:
    e = d.copy()
    e["x"] = 1
    return e
