"""The engine's claims with their full counts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter

import pytest

from tests.engine.test_syncs import COUNT, by_strace
from tests.killing import ASYNC, BLOCKING, kill_and_resume

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("source", [BLOCKING, ASYNC], ids=["blocking", "async"])
@pytest.mark.parametrize("seed", range(5))
def test_sixty_steps_killed_twenty_times(tmp_path, source, seed, report):
    """Every recorded step executed once, at most one repeated per kill, no effect repeated by itself."""
    tally = kill_and_resume(tmp_path, source=source, kills=20, seed=seed)

    report(
        f"60 steps and 10 effects, {'async' if source is ASYNC else 'blocking'}, SIGKILL at 20 random moments, seed {seed}",
        f"{tally.kills} kills; 0 recorded steps repeated; {tally.repeated} unrecorded steps repeated; "
        f"{tally.doubts} effects in doubt, each settled by hand, 0 repeated",
    )


RACER = """
import sys
import surefoot as sf

@sf.step
def look(run, i):
    with open("ledger", "a") as file:
        file.write(f"{run} {i}\\n")
    return i

@sf.workflow
def wf(run):
    return sum(look(run, i) for i in range(5))

for line in sys.stdin:
    print(wf.run(line.strip(), line.strip()), flush=True)
"""


def test_two_processes_start_the_same_run_fifty_times(tmp_path, report):
    """One executes, the other waits or gets the result."""
    (tmp_path / "app.py").write_text(RACER)
    racers = [
        subprocess.Popen(
            [sys.executable, "app.py"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for number in range(50):
        for racer in racers:
            racer.stdin.write(f"r{number}\n")
            racer.stdin.flush()
        assert [racer.stdout.readline() for racer in racers] == ["10\n", "10\n"]
    for racer in racers:
        racer.communicate(timeout=30)
    counts = Counter((tmp_path / "ledger").read_text().splitlines())

    assert len(counts) == 250
    assert set(counts.values()) == {1}
    report("two processes start the same run id at the same moment, 50 times", "250 steps in the ledger, 0 duplicates")


@pytest.mark.parametrize(("kind", "per_call"), [("step", 1), ("effect", 2)])
def test_syncs_counted_with_strace(tmp_path, kind, per_call, report):
    assert shutil.which("strace"), "this proof needs strace: apt-get install strace"
    seen = by_strace(tmp_path, kind)

    assert seen >= COUNT * per_call
    report(f"fsync and fdatasync calls for {COUNT} {kind}s running alone, by strace", f"{seen}")
