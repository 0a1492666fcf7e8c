# expect: SF306
import surefoot as sf

@sf.effect
def book(n: int) -> str:
    return "x"

@sf.workflow
def w(ns: list) -> None:
    with sf.saga() as s:
        sf.map(book, ns, key=str)
