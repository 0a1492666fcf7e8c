# expect: none
from langgraph.types import interrupt
from langgraph.errors import GraphInterrupt

def node(state):
    try:
        return {"x": interrupt("?")}
    except Exception as e:
        if isinstance(e, GraphInterrupt):
            raise
        return {}
