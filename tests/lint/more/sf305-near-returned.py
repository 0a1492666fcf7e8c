# expect: none
import surefoot as sf

@sf.step
def f(items: list, x: int) -> list:
    items.append(x)
    return items
