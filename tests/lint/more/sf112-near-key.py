# expect: none
import requests

def pay(o, key):
    for i in range(3):
        try:
            return requests.post("https://b.test/pay", json=o, headers={"Idempotency-Key": key})
        except requests.Timeout:
            continue
