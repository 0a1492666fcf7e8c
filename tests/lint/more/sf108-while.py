# expect: SF108
from uuid import uuid4
import requests

def pay(order):
    done = False
    while not done:
        try:
            requests.put("https://b.test", json=order, headers={"idempotency-key": str(uuid4())})
            done = True
        except requests.RequestException:
            continue
