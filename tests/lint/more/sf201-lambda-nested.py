# expect: SF201
import pendulum
import surefoot as sf

@sf.step
def f(d: str) -> str:
    return d

@sf.workflow(name="x", version=2)
def w() -> str:
    def inner():
        return f(str(pendulum.now()))
    return inner()
