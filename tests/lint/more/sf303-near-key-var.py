# expect: none
import requests
import surefoot as sf

@sf.effect(on_crash="retry")
def pay(x: str) -> None:
    key = sf.key()
    requests.post("https://b.test/pay", json={"x": x, "key": key})
