# expect: SF402
from langgraph.types import interrupt
from pathlib import Path

def node(state):
    if state["save"]:
        Path("x").write_text("y")
    return {"x": interrupt("?")}
