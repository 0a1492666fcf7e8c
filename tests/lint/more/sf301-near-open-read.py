# expect: none
import surefoot as sf

@sf.step
def load(p: str) -> str:
    with open(p) as f:
        return f.read()
