# expect: SF203
from os.path import exists
import surefoot as sf

@sf.workflow
def w(p: str) -> bool:
    return exists(p)
