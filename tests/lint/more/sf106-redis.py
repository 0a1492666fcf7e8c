# expect: SF106
import json

def load_state(redis, run):
    raw = redis.get(f"state:{run}")
    try:
        return json.loads(raw)
    except ValueError:
        return {}
