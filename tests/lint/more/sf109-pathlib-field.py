# expect: SF109
import json
from dataclasses import dataclass
from pathlib import Path
@dataclass
class Tracker:
    state_path: Path
    def write(self, data):
        self.state_path.write_text(json.dumps(data))
