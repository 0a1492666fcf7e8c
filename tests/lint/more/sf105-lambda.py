# expect: SF105
import json

def save_progress(redis, run, data):
    redis.set(run, json.dumps(data, default=lambda o: str(o)))
