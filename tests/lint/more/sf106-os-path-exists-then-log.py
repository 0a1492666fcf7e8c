# expect: SF106
import json, os, logging
def load_progress():
    if not os.path.exists("progress.json"):
        return {}
    try:
        with open("progress.json") as f:
            return json.load(f)
    except json.JSONDecodeError as e:
        logging.warning("corrupt, starting over: %s", e)
        return {}
