# expect: SF109
import json, os

def save_progress(d, folder):
    json.dump(d, open(os.path.join(folder, "progress.json"), "w"))
