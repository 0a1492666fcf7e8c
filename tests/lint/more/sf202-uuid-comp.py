# expect: SF202
from uuid import uuid4 as u
import surefoot as sf

@sf.effect
def e(k: str) -> None: ...

@sf.workflow
def w(n: int) -> None:
    for k in [u().hex for _ in range(n)]:
        e(k)
