# expect: SF102
import json

class W:
    def run(self, items):
        for i, it in enumerate(items):
            self._one(it)
            if (i + 1) % 25 == 0:
                self.checkpoint()
    def _one(self, it):
        send_sms(it)
    def checkpoint(self):
        with open("x.tmp", "w") as f:
            json.dump(self.state, f)
