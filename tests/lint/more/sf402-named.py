# expect: SF402
from langgraph.types import interrupt

def node(state):
    send_email(state["boss"])
    if state["big"]:
        return {"x": interrupt("?")}
    return {}
