# expect: SF303
import requests
import surefoot as sf

def post(x):
    return requests.post("https://x.test/pay", json=x)

@sf.effect(on_crash="retry", retries=3)
def pay(x: dict) -> None:
    post(x)
