# expect: SF203
from pathlib import Path
import surefoot as sf

@sf.step
def f(p: str) -> str:
    return p

@sf.workflow
def w(folder: str) -> list:
    return [f(str(p)) for p in sorted(Path(folder).glob("*.md"))]
