# expect: SF107
from uuid import uuid4
import surefoot as sf

@sf.workflow
def go(n: int) -> int:
    return n

def enqueue(n):
    go.start(f"go-{uuid4()}", n)
