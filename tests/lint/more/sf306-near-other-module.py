# expect: none
import surefoot as sf
from app.effects import book

@sf.workflow
def w(n: int) -> None:
    with sf.saga():
        book(n)
