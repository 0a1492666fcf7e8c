# expect: SF301
import os
import surefoot as sf
@sf.step
def deploy() -> None:
    os.system("make deploy")
