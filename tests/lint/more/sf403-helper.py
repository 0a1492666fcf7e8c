# expect: SF403
from langgraph.types import interrupt

def ask(q):
    return interrupt(q)

def node(state):
    try:
        return {"x": ask("?")}
    except Exception:
        return {}
