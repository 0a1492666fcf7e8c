# expect: SF104
from pathlib import Path
def modified(root: Path, state: dict):
    since = state["last_backup"]
    for p in root.rglob("*"):
        if since < p.stat().st_mtime:
            yield p
