# expect: none
import json, sys

def load_checkpoint(path):
    try:
        with open(path) as f:
            return json.load(f)
    except ValueError:
        print("damaged")
        sys.exit(2)
