# expect: none
import requests
from dbos import DBOS
from app import my

@my.step
def get(u):
    return requests.get(u)

@DBOS.workflow()
def w(u: str) -> None:
    get(u)
