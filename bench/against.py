"""This engine against an earlier one, in turn, in one run: has a change made it slower?

python -m bench.against COMMIT [NAME ...]    w1 and w1e, 15 turns; exit code 1 if a median is below 0.95

Each turn measures both, the other one first each time, so that a slow moment of the machine hits both alike. The earlier
engine is taken from git into a folder that is removed afterwards, and does its own `bench.work` there.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("w1", "w1e")
TURNS = 15
LEAST = 0.95


def checked_out(commit: str, folder: Path) -> Path:
    """The files of that commit. No working tree of git's own: nothing is left behind if this process is killed."""
    packed = subprocess.run(["git", "archive", commit, "src", "bench"], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def rate(name: str, tree: Path, at: Path) -> float:
    """How many calls in a second the engine in that folder does, in a fresh process and a fresh store."""
    unwanted = ("SUREFOOT_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    environment["PYTHONPATH"] = str(tree / "src")
    with tempfile.TemporaryDirectory(dir=at) as folder:
        command = [sys.executable, "-m", "bench.work", name, folder]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tree, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed in {tree}:\n{done.stderr}")
    return float(json.loads(done.stdout.splitlines()[-1])["rate"])


def in_turn(name: str, before: Path, at: Path, turns: int) -> list[tuple[float, float]]:
    """Rates of the earlier engine and of this one, turn by turn."""
    found = []
    for turn in range(turns):
        rates = {}
        for tree in (before, ROOT) if turn % 2 == 0 else (ROOT, before):
            rates[tree] = rate(name, tree, at)
        found.append((rates[before], rates[ROOT]))
    return found


def told(name: str, found: list[tuple[float, float]]) -> tuple[str, bool]:
    """One line, and whether it is fast enough."""
    ratios = sorted(now / before for before, now in found)
    before, now = (statistics.median(rates) for rates in zip(*found, strict=True))
    median = statistics.median(ratios)
    return (
        f"{name}: {median:.3f} x before (from {ratios[0]:.3f} to {ratios[-1]:.3f}, {len(found)} turns; "
        f"median {before:.0f} -> {now:.0f} calls a second)"
    ), median >= LEAST


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.against", description="Measure this engine against an earlier one.")
    parser.add_argument("commit")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench", help="where to measure: a real disk")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    print(f"load before the first turn: {os.getloadavg()[0]:.1f}", flush=True)
    enough = True
    with tempfile.TemporaryDirectory(dir=options.folder) as at:
        before = checked_out(options.commit, Path(at) / "before")
        for name in options.names:
            line, reached = told(name, in_turn(name, before, Path(at), options.turns))
            enough = enough and reached
            print(line if reached else f"{line}  BELOW {LEAST}", flush=True)
    sys.exit(0 if enough else 1)


if __name__ == "__main__":
    main()
