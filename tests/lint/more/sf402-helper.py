# expect: SF402
from langgraph.types import interrupt
import requests

def open_ticket(s):
    return requests.post("https://d.test/tickets", json=s)

def node(state):
    open_ticket(state)
    return {"x": interrupt("?")}
