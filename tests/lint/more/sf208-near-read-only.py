# expect: none
import surefoot as sf
LIMITS = [1, 2]
@sf.workflow
def w() -> int:
    mine = list(LIMITS)
    mine.append(3)
    return sum(mine) + len(LIMITS) + LIMITS.index(1)
