# expect: none
from pathlib import Path
import os
import surefoot as sf

@sf.workflow
def w(p: str) -> str:
    return str(Path(p).parent / "x".join(["a"])) + os.path.join("a", "b") + Path(p).with_suffix(".x").name
