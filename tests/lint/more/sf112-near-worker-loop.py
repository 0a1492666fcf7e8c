# expect: none
import requests, time
def worker(queue):
    while True:
        try:
            job = queue.get()
            requests.post("https://x.test/jobs", json=job)
        except requests.ConnectionError:
            time.sleep(1)
