# expect: SF201
import datetime
import surefoot as sf

class Clock:
    def day(self):
        return datetime.datetime.utcnow().date()

@sf.step
def f(d: str) -> str:
    return d

@sf.workflow
def w() -> str:
    c = Clock()
    return f(str(c.day()))
