# expect: SF302
import surefoot as sf

@sf.step
def f(q: str) -> bool:
    return bool(sf.approve(q))
