# expect: SF305
import surefoot as sf
@sf.step
def top(scores: dict[str, list]) -> str:
    scores["a"].sort()
    return scores["a"][0]
