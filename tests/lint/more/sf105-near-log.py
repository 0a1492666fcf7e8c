# expect: none
import json, logging

def after(state):
    logging.info("state now %s", json.dumps(state, default=str))
