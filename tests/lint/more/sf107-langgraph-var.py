# expect: SF107
import uuid
from langgraph.graph import StateGraph

def ask(graph, q):
    tid = str(uuid.uuid4())
    cfg = {"configurable": {"thread_id": tid}}
    return graph.invoke({"q": q}, config=cfg)["a"]
