# expect: SF112
from tenacity import Retrying, stop_after_attempt
import requests

def pay(o):
    for attempt in Retrying(stop=stop_after_attempt(3)):
        with attempt:
            requests.post("https://bank.test/pay", json=o)
