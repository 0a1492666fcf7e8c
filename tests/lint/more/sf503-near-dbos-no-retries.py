# expect: none
import requests
from dbos import DBOS

@DBOS.step()
def pay(n: int) -> None:
    requests.post("https://b.test/pay", json={"n": n})
