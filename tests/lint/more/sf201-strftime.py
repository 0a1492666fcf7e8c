# expect: SF201
import time
import surefoot as sf

@sf.workflow
def w() -> str:
    return time.strftime("%Y")
