# expect: SF305
import surefoot as sf

@sf.step
def f(items: list, x: int) -> int:
    items += [x]
    return x
