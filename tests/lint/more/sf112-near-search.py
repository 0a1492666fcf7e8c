# expect: none
import requests, tenacity

@tenacity.retry
def search(q):
    return requests.post("https://es.test/_search", json={"query": q}).json()
