# expect: SF106
import json, contextlib

def load_state(path):
    state = {}
    with contextlib.suppress(Exception):
        with open(path) as f:
            state = json.load(f)
    return state
