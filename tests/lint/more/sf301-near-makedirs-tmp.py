# expect: none
import os, tempfile, subprocess
import surefoot as sf
@sf.step
def build(src: str) -> str:
    folder = tempfile.mkdtemp()
    target = os.path.join(folder, "a")
    os.makedirs(target)
    return subprocess.run(["ls", target], capture_output=True, text=True).stdout
