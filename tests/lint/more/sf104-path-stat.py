# expect: SF104
from pathlib import Path

def pending(folder: Path, last_sync: float):
    return [p for p in folder.iterdir() if p.stat().st_mtime > last_sync]
