# expect: none
import requests
import surefoot as sf

@sf.step
def find(q: str) -> list:
    return requests.post("https://es.test/docs/_search", json={"query": q}).json()
