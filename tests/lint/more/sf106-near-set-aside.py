# expect: none
import json, os

def load_checkpoint(path):
    try:
        with open(path) as f:
            return json.load(f)
    except ValueError:
        os.rename(path, path + ".bad")
        return {}
