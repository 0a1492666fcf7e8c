# expect: SF110
import json

def save_checkpoint(path, s):
    try:
        with open(path + ".new", "w") as f:
            json.dump(s, f)
    except IOError as e:
        print(f"save failed {e}")
