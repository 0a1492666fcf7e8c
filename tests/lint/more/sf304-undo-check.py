# expect: SF304
import os
import surefoot as sf

@sf.effect
def mk(p: str) -> None:
    os.mkdir(p)

@mk.undo
def _(p: str, r: None) -> None:
    os.rmdir(p)

@mk.undo.check
def _(p: str, r: None):
    os.rmdir(p)
    return sf.happened(None)
