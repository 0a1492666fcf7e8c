# expect: none
from langgraph.types import interrupt
from langgraph.func import task, entrypoint
import requests

@task
def post(s):
    requests.post("https://d.test/tickets", json=s)

@entrypoint()
def flow(s):
    post(s).result()
    return interrupt("?")
