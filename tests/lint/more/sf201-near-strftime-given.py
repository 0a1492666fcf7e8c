# expect: none
import time
import surefoot as sf

@sf.workflow
def w(at: tuple) -> str:
    return time.strftime("%Y", at)
