# expect: SF403
from langgraph.types import interrupt
def node(state):
    try:
        x = interrupt("?")
    except BaseException:
        x = None
    return {"x": x}
