# expect: none
import tempfile
from langgraph.types import interrupt
def node(state):
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("x")
    return {"x": interrupt("?")}
