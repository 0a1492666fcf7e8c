# expect: SF109
import pickle
from pathlib import Path

class S:
    path: Path
    def checkpoint(self, obj):
        self.path.write_bytes(pickle.dumps(obj))
