# expect: none
import surefoot as sf
@sf.effect
def send(to: str) -> None: ...
@sf.step
def whom() -> list:
    return ["a"]
@sf.workflow
def w() -> None:
    for to in whom():
        send(to)
