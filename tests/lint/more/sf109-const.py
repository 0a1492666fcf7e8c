# expect: SF109
import json

STATE_FILE = "agent_state.json"

def persist(data):
    with open(STATE_FILE, "w", encoding="utf8") as f:
        f.write(json.dumps(data))
