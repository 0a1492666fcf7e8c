# expect: none
import json
from flask import Response

def get_state(state):
    return Response(json.dumps(state, default=str))
