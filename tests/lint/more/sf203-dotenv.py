# expect: SF203
import os
import surefoot as sf
@sf.workflow
def w() -> str:
    return os.environ.get("A") or "x"
