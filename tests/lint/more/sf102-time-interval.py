# expect: SF102
import time, requests

def run(rows, state):
    last = time.time()
    for row in rows:
        requests.post("https://x.test/rows", json=row)
        if time.time() - last > 60:
            save_state(state)
            last = time.time()
