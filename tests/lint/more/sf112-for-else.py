# expect: SF112
import requests
def place_order(o):
    for n in range(1, 4):
        try:
            response = requests.post("https://shop.test/orders", json=o)
        except requests.ConnectionError:
            continue
        else:
            return response
    return None
