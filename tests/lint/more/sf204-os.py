# expect: SF204
import os, shutil
import surefoot as sf

@sf.workflow
def w(p: str) -> None:
    os.makedirs(p)
    shutil.rmtree(p)
