# expect: none
import requests, time
def wait_done(n):
    for attempt in range(10):
        try:
            return requests.get(f"https://x.test/{n}").json()
        except requests.ConnectionError:
            time.sleep(1)
