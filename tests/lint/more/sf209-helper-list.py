# expect: SF209
import surefoot as sf

@sf.step
def f(n: str) -> str:
    return n

def all_of(a):
    return {x.strip() for x in a}

def go(x):
    f(x)

@sf.workflow
def w(a: list) -> None:
    for i, x in enumerate(list(all_of(a))):
        go(x)
