# expect: none
from pathlib import Path
import surefoot as sf

@sf.effect(on_crash="retry")
def write(p: str, t: str) -> None:
    Path(p).write_text(t)
