"""Real worker processes, killed, paused and stopped: every run goes on elsewhere, and no effect runs behind anyone's back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.store.open import close_all
from tests.working import ended, kinds, wait_until

APP = '''
import os, time
import surefoot as sf

if lease := os.environ.get("LEASE"):
    from surefoot.store.channel import Waits
    from surefoot.store.postgres.store import PostgresStore
    PostgresStore.open.__func__.__kwdefaults__["waits"] = Waits(lease=float(lease))

def note(line):
    fd = os.open("ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{line} {os.getpid()}\\n".encode())
    os.close(fd)

def hold(name):
    """Stand still while the gate is shut."""
    note(f"in {name}")
    while not os.path.exists("gate"):
        time.sleep(0.01)

@sf.step
def step(n):
    hold(f"step {n}")
    return n

@sf.effect
def once(n):
    hold(f"once {n}")
    return n

@sf.effect(on_crash="retry")
def keyed(n):
    hold(f"keyed {n} {sf.key()}")
    return n

@sf.workflow
def stepping(n):
    return step(n) + 1

@sf.workflow
def charging(n):
    return once(n) + 1

@sf.workflow
def repeating(n):
    return keyed(n) + 1

@sf.workflow
def deadly():
    os.kill(os.getpid(), 9)

@sf.effect
def paid():
    note("in paid")

@sf.workflow
def deadly_when_replayed():
    paid()
    if os.path.exists("deployed"):
        os._exit(3)
    sf.wait_event("go")
'''


class Fleet:
    """Worker processes that are gone when the test is over."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[subprocess.Popen[str]] = []
        (folder / "app.py").write_text(APP)
        sys.path.insert(0, str(folder))
        sys.modules.pop("app", None)

    def start(self, *options: str, lease: str = "") -> subprocess.Popen[str]:
        """`lease`: in seconds; a short one for a worker whose death the test waits out."""
        worker = subprocess.Popen(
            [sys.executable, "-m", "surefoot", "worker", "app", *options],
            cwd=self.folder, stderr=subprocess.PIPE, text=True, env={**os.environ, "LEASE": lease},
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def ledger(self, what: str = "") -> list[str]:
        path = self.folder / "ledger"
        return [line for line in path.read_text().splitlines() if what in line] if path.exists() else []

    def open_gate(self) -> None:
        (self.folder / "gate").touch()

    def close(self) -> None:
        sys.path.remove(str(self.folder))
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.communicate(timeout=30)


@pytest.fixture
def fleet(store: str, tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    yield made
    close_all()
    made.close()


def app():
    import app

    return app


def test_run_of_a_killed_worker_goes_on_in_another(fleet):
    app().stepping.start("r", 1)
    first = fleet.start(lease="3")
    wait_until(lambda: fleet.ledger("in step"))
    first.kill()
    first.wait()
    fleet.open_gate()

    fleet.start()

    assert sf.get_run("r").result(timeout=60) == 2
    assert len(fleet.ledger("in step")) == 2
    assert kinds("r").count("RunAdopted") == 2


def test_effect_of_a_killed_worker_is_in_doubt_and_not_run_again(fleet):
    """Nobody knows whether it happened, and no other worker may try."""
    app().charging.start("r", 1)
    first = fleet.start(lease="3")
    wait_until(lambda: fleet.ledger("in once"))
    first.kill()
    first.wait()
    fleet.open_gate()

    fleet.start()
    run = sf.get_run("r")
    wait_until(lambda: run.status == "stopped", 60)

    assert isinstance(run.stop, sf.InDoubt)
    assert len(fleet.ledger("in once")) == 1
    run.settle("once#1", happened=1, by="ann")
    assert run.result(timeout=60) == 2


def test_keyed_effect_of_a_killed_worker_is_sent_again_under_the_same_key(fleet):
    app().repeating.start("r", 1)
    first = fleet.start(lease="3")
    wait_until(lambda: fleet.ledger("in keyed"))
    first.kill()
    first.wait()
    fleet.open_gate()

    fleet.start()

    assert sf.get_run("r").result(timeout=60) == 2
    keys = {line.split()[3] for line in fleet.ledger("in keyed")}
    assert len(fleet.ledger("in keyed")) == 2
    assert len(keys) == 1


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_paused_worker_wakes_up_to_find_its_run_taken_and_says_what_it_did(fleet):
    """One `once` effect in flight while its worker is paused past its lease: the other does not run it, and the first,
    when it wakes up, cannot write an outcome into a run that is no longer its own. That it was executed it can say."""
    app().charging.start("r", 1)
    zombie = fleet.start(lease="3")
    wait_until(lambda: fleet.ledger("in once"))
    zombie.send_signal(signal.SIGSTOP)
    fleet.start()
    run = sf.get_run("r")
    wait_until(lambda: run.status == "stopped", 60)
    before = [entry.kind for entry in run.entries()]

    fleet.open_gate()
    zombie.send_signal(signal.SIGCONT)
    zombie.send_signal(signal.SIGTERM)
    _, said = zombie.communicate(timeout=60)

    assert len(fleet.ledger("in once")) == 1
    assert isinstance(run.stop, sf.InDoubt)
    assert [entry.kind for entry in run.entries()] == [*before, "EffectLandedLate"]
    assert "another process has taken over" in said
    assert "executed here, too late" in said


def test_worker_that_is_told_to_stop_ends_in_order(fleet):
    app().stepping.start("r", 1)
    worker = fleet.start()
    wait_until(lambda: fleet.ledger("in step"))
    worker.send_signal(signal.SIGTERM)
    fleet.open_gate()
    worker.communicate(timeout=60)

    assert worker.returncode == 0
    assert sf.get_run("r").status in ("queued", "done")
    assert len(fleet.ledger("in step")) == 1


def test_worker_that_cannot_finish_in_time_leaves_the_run_to_others(fleet):
    app().charging.start("r", 1)
    worker = fleet.start("--grace", "0.2s", lease="3")
    wait_until(lambda: fleet.ledger("in once"))
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=60)
    assert worker.returncode == 1

    fleet.start()
    run = sf.get_run("r")
    wait_until(lambda: run.status == "stopped", 60)

    assert isinstance(run.stop, sf.InDoubt)
    assert len(fleet.ledger("in once")) == 1


def test_run_that_kills_its_workers_is_quarantined(fleet):
    """Five dead workers are enough; the others go on with everything else."""
    app().deadly.start("poison")
    run = sf.get_run("poison")
    for _ in range(5):
        fleet.start(lease="1").communicate(timeout=60)
    assert kinds("poison").count("RunAdopted") == 5
    fleet.open_gate()
    app().stepping.start("healthy", 1)

    fleet.start()

    wait_until(ended("healthy"), 60)
    wait_until(lambda: run.status == "stopped", 60)
    assert isinstance(run.stop, sf.Quarantined)


def test_run_that_kills_its_workers_while_rehearsing_is_quarantined(fleet):
    """A rehearsal claims nothing at first. What was handed out before and got nowhere is claimed, so that it is counted."""
    workflow = app().deadly_when_replayed
    with pytest.raises(sf.WaitingForAnswer):
        workflow.run("poison")
    sf.send_event("poison", "go", None)
    (fleet.folder / "deployed").touch()
    before = kinds("poison")
    deaths = 0
    while kinds("poison").count("RunAdopted") - before.count("RunAdopted") < 5:
        deaths += 1
        assert deaths <= 7, "it kills without being counted"
        assert fleet.start(lease="1").wait(timeout=60) == 3

    fleet.start()
    run = sf.get_run("poison")
    wait_until(lambda: run.status == "stopped", 60)

    assert isinstance(run.stop, sf.Quarantined)
    assert "which died while rehearsing" in run.stop.summary
    assert deaths in (5, 6), "only the first rehearsal may be unclaimed"
    assert kinds("poison") == [*before, *["RunAdopted"] * 6, "RunStopped"]
    assert len(fleet.ledger("in paid")) == 1


def test_two_workers_share_the_work_and_never_a_run(fleet):
    fleet.open_gate()
    runs = [app().repeating.start(f"r{n}", n).id for n in range(30)]
    fleet.start()
    fleet.start()

    wait_until(ended(*runs), 60)

    assert len(fleet.ledger("in keyed")) == 30
    assert all(kinds(run).count("RunAdopted") == 1 for run in runs)
