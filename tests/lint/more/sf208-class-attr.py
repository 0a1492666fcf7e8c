# expect: SF208
import surefoot as sf

class Stats:
    total = 0

@sf.step
def f(n: int) -> int:
    return n

@sf.workflow
def w() -> int:
    Stats.total += f(1)
    return Stats.total
