# expect: SF306
import surefoot as sf

@sf.effect
def book(n: int) -> str:
    return "x"

def both(n):
    book(n)

@sf.workflow
def w(n: int) -> None:
    with sf.saga():
        both(n)
