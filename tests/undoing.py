"""A saga of five effects that fails at the fifth, killed with SIGKILL at every point of undoing, and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import surefoot as sf
from surefoot.store.open import close_all

BLOCKING = """
import os, signal, sys
import surefoot as sf

sf.configure(in_flight="0s")  # what these effects do is done at once, or never

DIE, POLICY = os.environ.get("DIE", ""), os.environ["POLICY"]

def ledger(line):
    fd = os.open("ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (line + "\\n").encode())
    os.close(fd)

def die(point):
    if DIE == point:
        os.kill(os.getpid(), signal.SIGKILL)

@sf.effect
def book(n):
    if n == 5:
        raise ValueError("sold out")
    ledger(f"book {n}")
    return n * 10

@book.undo(on_crash=POLICY)
def _(n, result):
    die(f"before {n}")
    ledger(f"undo {n} {result} {sf.key()}")
    die(f"after {n}")

if POLICY == "check":
    @book.undo.check
    def _(n, result):
        done = f"undo {n} {result} {sf.key()}" in open("ledger").read().splitlines()
        return sf.happened() if done else sf.not_happened()

@sf.workflow
def trip():
    with sf.saga():
        for n in range(1, 6):
            book(n)

if __name__ == "__main__":
    try:
        trip.run("r")
    except sf.Stopped as stop:
        print(type(stop).__name__, stop.address)
    except ValueError as error:
        print("failed:", error)
"""
ASYNC = (
    BLOCKING.replace("import surefoot as sf", "import asyncio\nimport surefoot.aio as sf")
    .replace("def book(", "async def book(")
    .replace("def _(n, result):", "async def _(n, result):")
    .replace("def trip(", "async def trip(")
    .replace("with sf.saga", "async with sf.saga")
    .replace("            book(n)", "            await book(n)")
    .replace('trip.run("r")', 'asyncio.run(trip.run("r"))')
)
SOURCES = {"blocking": BLOCKING, "async": ASYNC}
POINTS = [f"{moment} {n}" for n in (4, 3, 2, 1) for moment in ("before", "after")]


def kill_while_undoing(folder: Path, colour: str, policy: str, point: str) -> str:
    """What was seen, in words. Holds the ledger against the promise (C-11)."""
    (folder / "app.py").write_text(SOURCES[colour])
    assert _live(folder, policy, point) is None
    moment, number = point.split()
    ended = _live(folder, policy)
    seen = "all undone once"
    if policy == "ask":
        address = f"book.undo#{5 - int(number)}"
        assert ended == f"InDoubt {address}"
        assert _live(folder, policy) == ended
        run = sf.get_run("r", store=f"sqlite:////{folder}/.surefoot/runs.db")
        run.settle(address, **({"happened": None} if moment == "after" else {"not_happened": True}))
        close_all()
        ended = _live(folder, policy)
        seen = "stopped in doubt at that undo; settled, then all undone once"
    assert ended == "failed: sold out"
    lines = (folder / "ledger").read_text().splitlines()
    undos = [line for line in lines if line.startswith("undo")]
    assert [line for line in lines if line.startswith("book")] == [f"book {n}" for n in (1, 2, 3, 4)]
    if policy == "retry":
        assert len(undos) == (5 if moment == "after" else 4)
        undos = list(dict.fromkeys(undos))  # the other side knows the key
        seen = "all undone once, after deduplication by key"
    assert [line.split()[1:3] for line in undos] == [[str(n), str(n * 10)] for n in (4, 3, 2, 1)]
    assert _live(folder, policy) == "failed: sold out"
    return seen


def _live(folder: Path, policy: str, die: str = "") -> str | None:
    """What it printed; None: it was killed."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "POLICY": policy, "DIE": die}
    command = [sys.executable, "app.py"]
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=50, check=False)
    if ended.returncode == -signal.SIGKILL:
        return None
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()
