# expect: SF206
from threading import Thread
import surefoot as sf

@sf.step
def f(n: int) -> int:
    return n

@sf.workflow
def w() -> None:
    t = Thread(target=f, args=(1,))
    t.start()
