# expect: none
import json
def save_metrics(path, m):
    with open(path, "w") as f:
        json.dump(m, f)
