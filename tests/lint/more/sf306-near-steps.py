# expect: none
import surefoot as sf

@sf.step
def look(n: int) -> str:
    return "x"

@sf.workflow
def w(n: int) -> None:
    with sf.saga():
        look(n)
