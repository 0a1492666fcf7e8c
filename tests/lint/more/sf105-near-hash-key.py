# expect: none
import json, hashlib
def checkpoint_key(state):
    text = json.dumps(state, default=str, sort_keys=True)
    return hashlib.md5(text.encode()).hexdigest()
