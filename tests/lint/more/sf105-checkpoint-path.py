# expect: SF105
import json

def dump(self, run):
    with open(f"{run}.checkpoint.new", "x") as f:
        json.dump(self.items, f, indent=2, default=str)
