# expect: SF305
import surefoot as sf

@sf.step
def f(state: dict, m: str) -> int:
    state["messages"].append(m)
    return 1
