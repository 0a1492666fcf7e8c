# expect: SF302
import surefoot as sf

@sf.effect
def pay(n: int) -> None: ...

def do(n):
    pay(n)

@sf.step
def f(n: int) -> None:
    do(n)
