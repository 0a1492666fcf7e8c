# expect: none
import os
import surefoot as sf

def rm(p):
    os.remove(p)

@sf.effect
def e(p: str) -> None:
    rm(p)

@sf.workflow
def w(p: str) -> None:
    e(p)
