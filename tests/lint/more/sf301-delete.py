# expect: SF301
import os
import surefoot as sf

@sf.step
def rm(p: str) -> None:
    os.unlink(p)
