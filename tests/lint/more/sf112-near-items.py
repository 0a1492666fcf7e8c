# expect: none
import requests

def pay_all(orders):
    for o in orders:
        try:
            requests.post("https://b.test/pay", json=o)
        except requests.Timeout:
            print("later")
