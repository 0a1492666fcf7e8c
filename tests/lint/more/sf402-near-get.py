# expect: none
from langgraph.types import interrupt
import requests

def node(state):
    t = requests.get("https://d.test/tickets/1").json()
    return {"x": interrupt(t)}
