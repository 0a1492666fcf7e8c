# expect: SF402
from langgraph.types import interrupt
import requests
def node(state):
    for q in state["qs"]:
        a = interrupt(q)
        requests.post("https://d.test/answers", json={"a": a})
    return {}
