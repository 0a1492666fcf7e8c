# expect: none
import json

def load_settings(path):
    try:
        with open(path) as f:
            return json.load(f)
    except Exception:
        return {}
