# expect: SF205
from time import sleep
import surefoot as sf

def pause():
    sleep(3)

@sf.workflow
def w() -> None:
    pause()
