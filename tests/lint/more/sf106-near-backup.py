# expect: none
import json

def load_checkpoint(path):
    try:
        with open(path) as f:
            return json.load(f)
    except ValueError:
        return load_backup(path + ".1")
