"""The stories of a crash around an effect, told with a real SIGKILL and a world that outlives every process.

The world is a ledger in a process of its own, reached over loopback: it writes down everything it is asked to do and
forgets nothing. One charge is two halves, so that it can be cut in the middle. After each story the ledger is held
against what was promised (C-03 to C-06): no charge is made twice by surefoot's own decision other than under the same
key, and none is lost.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import surefoot as sf
from surefoot.store.open import close_all
from tests.ledger import ask

BLOCKING = """
import json, os, signal, socket, sys
import surefoot as sf
from surefoot.engine.process import config

sf.configure(in_flight="0s")  # what these effects do is done at once, or never

POLICY, UNDO, DIE = os.environ["POLICY"], os.environ.get("UNDO", ""), os.environ.get("DIE", "")

def ledger(**request):
    with socket.create_connection(("127.0.0.1", int(os.environ["LEDGER"]))) as line:
        line.sendall(json.dumps(request).encode() + b"\\n")
        return json.loads(line.makefile().readline())

def die(n, moment):
    if n == 1 and moment == DIE:
        os.kill(os.getpid(), signal.SIGKILL)

def die_in_the_outcome(n):
    if n == 1 and DIE == "outcome":
        config.runtime(create=True).store._writer.set_commit_hook(lambda: os.kill(os.getpid(), signal.SIGKILL))

@sf.step
def look(n):
    ledger(do="step", what=f"look {n}")
    return n

@sf.effect(on_crash=POLICY)
def charge(n):
    die(n, "before")
    ledger(do="half", what=f"charge {n}", key=sf.key(), half=1)
    die(n, "half")
    ledger(do="half", what=f"charge {n}", key=sf.key(), half=2)
    die(n, "after")
    die_in_the_outcome(n)
    return f"ch_{n}"

if POLICY == "check":
    @charge.check
    def _(n):
        halves = 0
        for line in ledger(do="look", what=f"charge {n}"):
            halves = 0 if line["do"] == "undo" else halves + (line["key"] == sf.key())
        die(n, "check")
        return [sf.not_happened(), sf.partial("one half"), sf.happened(f"ch_{n}")][halves]

if UNDO:
    @charge.undo(on_crash=UNDO)
    def _(n, result):
        die(n, "before undo")
        ledger(do="undo", what=f"charge {n}", key=sf.key())
        die(n, "after undo")

@sf.workflow
def wf():
    charges = []
    for n in range(3):
        look(n)
        charges.append(charge(n))
    return charges

if __name__ == "__main__":
    try:
        print(json.dumps(wf.run("r")))
    except sf.Stopped as stop:
        print(type(stop).__name__, stop.address, stop)
        sys.exit(3)
    except sf.StepFailed as failure:
        print(failure)
        sys.exit(1)
"""
ASYNC = (
    BLOCKING.replace("import surefoot as sf", "import asyncio\nimport surefoot.aio as sf")
    .replace("def look(", "async def look(")
    .replace("def charge(", "async def charge(")
    .replace("    def _(n", "    async def _(n")
    .replace("def wf(", "async def wf(")
    .replace("        look(n)", "        await look(n)")
    .replace("charges.append(charge(n))", "charges.append(await charge(n))")
    .replace('wf.run("r")', 'asyncio.run(wf.run("r"))')
)
SOURCES = {"blocking": BLOCKING, "async": ASYNC}
MOMENTS = ("before", "half", "after", "outcome")
"""Before the call; half-way; after the call, before the record; while the record is being written."""
DONE = ["ch_0", "ch_1", "ch_2"]


class Story:
    """One program, one world, as many lives as it takes."""

    def __init__(self, folder: Path, port: int, colour: str, policy: str, undo: str = "") -> None:
        self.folder = folder
        self.port = port
        self.env = {"POLICY": policy, "UNDO": undo, "LEDGER": str(port)}
        (folder / "app.py").write_text(SOURCES[colour])

    def live(self, die: str = "") -> subprocess.CompletedProcess[str]:
        close_all()
        return subprocess.run(
            [sys.executable, "app.py"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **self.env, "DIE": die},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    def killed(self, moment: str) -> None:
        ended = self.live(moment)
        assert ended.returncode == -signal.SIGKILL, (moment, ended.stdout, ended.stderr)

    def ends(self) -> list[str]:
        ended = self.live()
        assert ended.returncode == 0, (ended.stdout, ended.stderr)
        return list(json.loads(ended.stdout))

    def stops(self) -> str:
        """Where it stops, in doubt. Met a second time, nothing is executed and nothing is written."""
        first = self.live()
        assert (first.returncode, first.stdout.split()[0]) == (3, "InDoubt"), (first.stdout, first.stderr)
        world, entries = self.lines(), len(self.run.entries())
        again = self.live()
        assert again.stdout == first.stdout
        assert (self.lines(), len(self.run.entries())) == (world, entries)
        return first.stdout.split()[1]

    @property
    def run(self) -> Any:
        return sf.get_run("r", store=f"sqlite:////{self.folder}/.surefoot/runs.db")

    def lines(self, what: str = "*") -> list[dict[str, Any]]:
        return list(ask(self.port, do="look", what=what))

    def require_kept(self, *, attempts: int, undos: int = 0) -> None:
        """Every charge is in the world exactly once; charge 1 was made in so many attempts, all with one key."""
        for n in range(3):
            lines = self.lines(f"charge {n}")
            halves = [line for line in lines if line["do"] == "half"]
            assert len({line["key"] for line in halves}) == 1
            assert len(halves) == (attempts if n == 1 else 2), lines
            assert len([line for line in lines if line["do"] == "undo"]) == (undos if n == 1 else 0), lines
            last = [line["half"] if line["do"] == "half" else "undo" for line in lines][-2:]
            assert last == [1, 2], lines
        assert len(self.lines("look 0") + self.lines("look 1") + self.lines("look 2")) == 3, (
            "no recorded step runs again"
        )


def tell(story: Story, policy: str, moment: str) -> str:
    """Kill at that moment, go on, and hold the outcome against the promise. What was seen, in words."""
    story.killed(moment)
    cut = {"before": 0, "half": 1}.get(moment, 2)
    match policy:
        case "retry":
            assert story.ends() == DONE
            story.require_kept(attempts=cut + 2)
            return f"run again with the same key: {cut + 2} halves asked for, 2 after deduplication"
        case "fail":
            for _ in range(2):
                ended = story.live()
                assert (ended.returncode, "InDoubt: charge#2" in ended.stdout) == (1, True), ended
            assert len(story.lines("charge 1")) == cut
            assert story.lines("charge 2") == []
            return "failed, saying that its outcome is unknown; not run again"
        case "check" if moment != "half":
            assert story.ends() == DONE
            story.require_kept(attempts=2)
            learned = [call.learned_by for call in story.run.steps() if call.address == "charge#2"]
            assert learned == ["check"] if cut else not learned[0].startswith("person")
            return "found by its check, not repeated" if cut else "found missing by its check, and run once"
        case "ask" | "check":
            assert story.stops() == "charge#2"
            assert len(story.lines("charge 1")) == cut
            return _settled(story, cut)
    raise AssertionError(policy)


def _settled(story: Story, cut: int) -> str:
    """A person looks at the world, mends it if need be, and answers truthfully."""
    if cut == 2:
        story.run.settle("charge#2", happened="ch_1", by="ann", note="seen")
    else:
        if cut == 1:
            ask(story.port, do="undo", what="charge 1", key="by hand")
        story.run.settle("charge#2", not_happened=True, by="ann")
    assert story.ends() == DONE
    story.require_kept(attempts=2 if cut != 1 else 3, undos=cut == 1)
    return "stopped in doubt until a person settled it; nothing run by itself"
