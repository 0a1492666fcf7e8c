# expect: SF106
import json
class Store:
    def load_state(self, run):
        try:
            row = self.db.execute("SELECT body FROM states WHERE run = ?", (run,)).fetchone()
            return json.loads(row[0])
        except Exception:
            return {}
