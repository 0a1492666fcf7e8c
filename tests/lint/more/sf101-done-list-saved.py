# expect: SF101
import json

def run(items, state):
    for item in items:
        state["done"].append(item)
        save_state(state)
        upload_file(item)
