# expect: SF112
import requests, time

def create_order(o):
    for i in range(5):
        try:
            r = requests.post("https://shop.test/orders", json=o, timeout=5)
            r.raise_for_status()
            return r.json()
        except requests.RequestException:
            time.sleep(2 ** i)
    raise RuntimeError
