# expect: SF106
import json

class Run:
    def __init__(self, checkpoint_path):
        self.state = {}
        try:
            with open(checkpoint_path) as f:
                self.state = json.load(f)
        except Exception as e:
            print("starting fresh", e)
