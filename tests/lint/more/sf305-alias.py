# expect: SF305
import surefoot as sf

@sf.step
def f(state: dict) -> int:
    h = state["h"]
    h.append(1)
    return 1
