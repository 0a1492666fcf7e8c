# expect: SF106
import json
DEFAULT = {"page": 0}
def load_cursor(path):
    try:
        return json.load(open(path))
    except (OSError, ValueError):
        return dict(DEFAULT)
