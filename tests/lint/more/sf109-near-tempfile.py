# expect: none
import json, os, tempfile

def save_state(path, s):
    fd, tmp = tempfile.mkstemp(dir=os.path.dirname(path))
    with open(tmp, "w") as f:
        json.dump(s, f)
    os.replace(tmp, path)
