# expect: none
import tempfile, os
import surefoot as sf

@sf.step
def render(s: str) -> int:
    fd, path = tempfile.mkstemp()
    with open(path, "w") as f:
        f.write(s)
    os.remove(path)
    return 1
