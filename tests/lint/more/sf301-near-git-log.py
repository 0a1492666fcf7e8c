# expect: none
import subprocess
import surefoot as sf

@sf.step
def log() -> str:
    return subprocess.run(["git", "log", "-1"], capture_output=True, text=True).stdout
