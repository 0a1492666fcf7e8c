# expect: SF203
import json
from pathlib import Path
import surefoot as sf
@sf.step
def f(x: dict) -> dict:
    return x
@sf.workflow
def w(path: Path) -> dict:
    return f(json.loads(path.read_text()))
