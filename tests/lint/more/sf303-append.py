# expect: SF303
import surefoot as sf

@sf.effect(on_crash="retry")
def note(t: str) -> None:
    with open("log.txt", "a") as f:
        f.write(t)
