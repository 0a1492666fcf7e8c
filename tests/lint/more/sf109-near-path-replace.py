# expect: none
import json
from pathlib import Path

def save_state(path: Path, s):
    new = path.with_suffix(".next")
    new.write_text(json.dumps(s))
    new.replace(path)
