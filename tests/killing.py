"""Kill a real process at random moments, resume it, and hold the journal against what really ran.

The world is a ledger file that steps and effects write themselves. After every kill the journal is
read: what it calls done must never be executed again.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import surefoot as sf
from surefoot.store.open import close_all

STEPS = 60
BLOCKING = """
import os, sys, time
import surefoot as sf

def ledger(line):
    fd = os.open("ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (line + "\\n").encode())
    os.close(fd)

def work(seconds=0.002):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

@sf.step
def step(i):
    ledger(f"step {i}")
    work()
    return {"i": i}

@sf.effect
def effect(i):
    work(0.001)
    ledger(f"effect {i} {sf.key()}")
    work(0.001)
    return i

@sf.workflow
def wf(n):
    total = 0
    for i in range(n):
        total += step(i)["i"]
        if i % 6 == 5:
            effect(i)
    return total

if __name__ == "__main__":
    try:
        print(wf.run("r", 60))
    except sf.InDoubt as stop:
        print(stop.address)
        sys.exit(3)
"""
ASYNC = (
    BLOCKING.replace("import surefoot as sf", "import asyncio\nimport surefoot.aio as sf")
    .replace("def step(", "async def step(")
    .replace("def effect(", "async def effect(")
    .replace("def wf(", "async def wf(")
    .replace("total += step(i)", "total += (await step(i))")
    .replace("            effect(i)", "            await effect(i)")
    .replace('print(wf.run("r", 60))', 'print(asyncio.run(wf.run("r", 60)))')
)


class Tally:
    """What a series of kills came to."""

    def __init__(self) -> None:
        self.kills = 0
        self.doubts = 0
        self.repeated = 0
        self.result = ""


def kill_and_resume(folder: Path, *, source: str, kills: int, seed: int) -> Tally:
    """Kill `kills` times at random moments, resume each time, run to the end, check everything."""
    luck = random.Random(seed)
    (folder / "app.py").write_text(source)
    ledger = folder / "ledger"
    tally = Tally()
    done_counts: dict[str, int] = {}
    while True:
        target = _length(ledger) + luck.randint(0, 5) if tally.kills < kills else None
        output = _run(folder, ledger, target, luck, tally)
        counts = Counter(_lines(ledger))
        for line, count in done_counts.items():
            assert counts[line] == count, f"{line} was recorded as done and executed again"
        if output is not None and not output.startswith("effect#"):
            tally.result = output.strip()
            break
        if output is not None:
            _settle(output.strip(), counts, tally)
        done_counts.update(_done_lines(counts))
    _check_end(tally, Counter(_lines(ledger)), kills)
    return tally


def _run(folder: Path, ledger: Path, target: int | None, luck: random.Random, tally: Tally) -> str | None:
    process = subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    if target is not None and _wait_for(ledger, target, process):
        _spin(luck.random() * 0.004)
        process.kill()
    out, _ = process.communicate(timeout=60)
    if process.returncode == -signal.SIGKILL:
        tally.kills += 1
        return None
    assert process.returncode in (0, 3), out
    return out


def _wait_for(ledger: Path, lines: int, process: subprocess.Popen[str]) -> bool:
    while process.poll() is None:
        if _length(ledger) >= lines:
            return True
    return False


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def _settle(address: str, counts: Counter[str], tally: Tally) -> None:
    """A person looks at the world and answers truthfully."""
    tally.doubts += 1
    run = sf.get_run("r", store="sqlite:///.surefoot/runs.db")
    number = (int(address.removeprefix("effect#")) - 1) * 6 + 5
    if any(line.startswith(f"effect {number} ") for line in counts):
        run.settle(address, happened=number)
    else:
        run.settle(address, not_happened=True)
    close_all()


def _done_lines(counts: Counter[str]) -> dict[str, int]:
    try:
        calls = sf.get_run("r", store="sqlite:///.surefoot/runs.db").steps()
    except sf.NotFound:
        return {}
    finally:
        close_all()
    names = {f"step {int(c.address[5:]) - 1}" for c in calls if c.kind == "step" and c.status == "done"}
    return {line: counts[line] for line in names}


def _check_end(tally: Tally, counts: Counter[str], kills: int) -> None:
    assert tally.result == str(sum(range(STEPS)))
    assert tally.kills == kills
    steps = {line: count for line, count in counts.items() if line.startswith("step")}
    effects = {line: count for line, count in counts.items() if line.startswith("effect")}
    assert len(steps) == STEPS
    tally.repeated = sum(steps.values()) - STEPS
    assert tally.repeated <= kills, "at most one step is repeated per kill"
    assert len(effects) == STEPS // 6
    assert set(effects.values()) == {1}, "an effect that asks is never repeated by itself"


def _length(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
