# expect: SF402
from langgraph.types import interrupt

def node(state):
    with open("audit", "a") as f:
        f.write("asked")
        x = interrupt("?")
    return {"x": x}
