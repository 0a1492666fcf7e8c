# expect: none
import json

done = {}

def run(items):
    for i in items:
        if i in done:
            continue
        upload_file(i)
        done[i] = True
        with open("p.tmp", "w") as f:
            json.dump(done, f)
