# expect: SF203
import subprocess
import surefoot as sf

@sf.workflow
def w() -> str:
    return subprocess.check_output(["git", "rev-parse", "HEAD"], text=True)
