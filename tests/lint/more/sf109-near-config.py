# expect: none
import json

def save_config(path, c):
    with open(path, "w") as f:
        json.dump(c, f)
