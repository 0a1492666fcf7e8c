# expect: none
from langgraph.types import interrupt

def node(state):
    try:
        return {"x": int(interrupt("?"))}
    except ValueError:
        return {}
