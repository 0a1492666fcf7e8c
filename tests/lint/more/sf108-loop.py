# expect: SF108
import uuid, requests

def pay(order):
    for attempt in range(3):
        key = str(uuid.uuid4())
        try:
            return requests.post("https://bank.test/pay", json=order, headers={"Idempotency-Key": key})
        except requests.Timeout:
            pass
