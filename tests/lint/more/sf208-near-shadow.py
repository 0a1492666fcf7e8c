# expect: none
import surefoot as sf

HISTORY = []

@sf.workflow
def w(n: int) -> list:
    HISTORY = []
    HISTORY.append(n)
    return HISTORY
