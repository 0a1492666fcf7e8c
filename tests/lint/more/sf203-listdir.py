# expect: SF203
import os
import surefoot as sf

@sf.step
def f(p: str) -> str:
    return p

@sf.workflow
def w(folder: str) -> list:
    return [f(p) for p in os.listdir(folder)]
