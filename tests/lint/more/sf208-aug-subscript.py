# expect: SF208
import surefoot as sf

COUNTS: dict[str, int] = {}

@sf.workflow
def w(k: str) -> int:
    COUNTS[k] = COUNTS.get(k, 0) + 1
    return COUNTS[k]
