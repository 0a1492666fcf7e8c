# expect: none
import requests, tenacity

@tenacity.retry
def put_object(k, v):
    return requests.put(f"https://s.test/{k}", data=v)
