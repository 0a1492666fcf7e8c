"""Engines: which there are, what they are told, and that another one than ours can stand in."""

from __future__ import annotations

import ast
import heapq
import queue
import sys
import threading
import types
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.engine.process import config, engines, journal
from tests.working import ended, kinds, wait_until

SRC = Path(sf.__file__).parent
MICROS = 1_000_000


class Hand:
    """An engine that knows nothing but the bell, and what drives answer: it asks no store what is ready."""

    drives = True

    def __init__(self, url):
        self.url = url
        self.rung = []
        self.inbox = queue.SimpleQueue()

    def ring(self, row, store):
        found = journal.load(config.runtime(create=False).store, row.run)
        self.rung.append((row.run, found[0].seq >= row.seq))
        self.inbox.put((row.run, row.wake))

    def reopen(self, row, store):
        """It closes nothing."""

    def serve(self, driver, share):
        self.driver, self.share = driver, share
        return self

    def run(self):
        timers, now, driven = [], self.driver.runtime.clock.now, self.driver.drive
        while True:
            left = (timers[0][0] - now()) / MICROS if timers else 60
            try:
                run, wake = self.inbox.get(timeout=max(left, 0.001))
            except queue.Empty:
                run, wake = heapq.heappop(timers)[::-1] if timers else ("", None)
            if run is None:
                return self.driver.close(self.share.grace_seconds)
            if wake is not None and wake <= now() and run not in self.driver.busy:
                driven(run).add_done_callback(self.look_again)
            elif (
                wake is not None
            ):  # It is not time yet; or it was rung for while it is driven: then once more, a little later.
                heapq.heappush(timers, (max(wake, now() + MICROS // 100), run))

    def look_again(self, drive):
        if (stand := drive.result().stand) is not None:
            self.inbox.put((stand.run, stand.wake))

    def stop(self):
        self.inbox.put((None, None))


@pytest.fixture
def hand(store, monkeypatch):
    """This process has that engine, and its store hands out nothing."""
    module = types.ModuleType("hand_engine")
    module.open_engine = Hand
    monkeypatch.setitem(sys.modules, "hand_engine", module)
    monkeypatch.setitem(engines._MODULES, "hand", "hand_engine")
    monkeypatch.setattr(engines, "_opened", {})
    monkeypatch.setattr(engines, "_configured", None)
    monkeypatch.setattr("surefoot.core.readiness.LONGEST_BACK_OFF", 0)
    sf.configure(engine="hand:")
    monkeypatch.setattr(config.runtime(create=True).store, "reserve", None)
    return engines.opened()


@sf.step
def double(n):
    return 2 * n


@sf.workflow
def doubling(n):
    return double(n)


@sf.workflow
def napping(seconds):
    sf.sleep(seconds)
    return "awake"


@sf.workflow
def approved():
    return bool(sf.approve("go on?"))


@sf.workflow
def told():
    return sf.wait_event("go")


@sf.workflow
def family(n):
    return sum(sf.map(lambda i: sf.child(doubling, f"{sf.run_id()}/{i}", i), range(n), key=str))


# -- which there are ----------------------------------------------------------------------------------------


def test_engine_that_nobody_knows_is_refused_with_those_that_there_are(monkeypatch):
    """And nothing that follows its scheme is shown: a password may be in it."""
    with pytest.raises(sf.UsageError, match=r"'restate' is no engine .* embedded:") as refused:
        sf.configure(engine="restate://user:hunter2@host")
    assert "hunter2" not in str(refused.value)
    assert engines.url() == "embedded:"

    monkeypatch.setenv("SUREFOOT_ENGINE", "dagster://x")
    with pytest.raises(sf.UsageError, match="'dagster' is no engine"):
        doubling.start("refused", 1)
    assert not Path(".surefoot").exists()


def test_configured_engine_counts_before_the_environment(monkeypatch):
    monkeypatch.setattr(engines, "_configured", None)
    monkeypatch.setenv("SUREFOOT_ENGINE", "elsewhere:")
    assert engines.url() == "elsewhere:"
    sf.configure(engine="embedded:")
    assert engines.url() == "embedded:"
    assert doubling.run("here", 1) == 2


# -- what they are told -------------------------------------------------------------------------------------


@sf.effect
def charge():
    raise TimeoutError("nobody knows")


@sf.workflow
def paying():
    return charge()


@sf.workflow
def broken():
    raise sf.UsageError("the code is wrong")


def rung_by(hand, act):
    del hand.rung[:]
    act()
    return hand.rung


def test_every_word_after_which_a_run_can_go_on_rings_once_it_is_durable(hand):
    """Whoever hears the bell finds what it was rung for."""
    with pytest.raises(sf.WaitingForAnswer):
        approved.run("asking")
    with pytest.raises(sf.WaitingForAnswer):
        told.run("listening")
    with pytest.raises(sf.InDoubt):
        paying.run("paying")
    assert hand.rung == []  # A session does not ring for the run that it drives itself.

    assert rung_by(hand, lambda: doubling.start("new", 1)) == [("new", True)]
    assert rung_by(hand, lambda: sf.get_run("asking").answer("approve#1", value=True)) == [("asking", True)]
    assert rung_by(hand, lambda: sf.send_event("listening", "go", 1)) == [("listening", True)]
    assert rung_by(hand, lambda: sf.get_run("paying").settle("charge#1", happened=7)) == [("paying", True)]
    assert rung_by(hand, lambda: doubling.run("new", 1)) == []
    assert rung_by(hand, lambda: sf.get_run("new").fork("forked", at="double#1")) == [("forked", True)]
    assert rung_by(hand, lambda: sf.get_run("new").rewind("double#1", by="ann")) == [("new", True)]
    assert rung_by(hand, lambda: sf.get_run("listening").cancel(by="ann")) == [("listening", True)]


def test_ended_child_rings_for_its_parent(hand):
    family.start("family", 1)
    with sf.Worker() as worker:
        wait_until(ended("family"))
    assert worker.ended["done"] == 2
    assert ("family", True) in hand.rung[1:]


def test_bell_that_breaks_is_no_matter_of_whoever_wrote(hand, monkeypatch, caplog):
    """The entry is durable; to fail now would tell its writer that it is not."""

    def breaks(row, store):
        raise ConnectionError("no engine there")

    monkeypatch.setattr(hand, "ring", breaks)

    assert doubling.start("new", 1).status == "queued"

    assert "run new: the engine could not be told that it can go on: ConnectionError('no engine there')" in caplog.text


SILENT = {
    "bell.py": "it is the bell",
    "commit.py": "sessions, of which the drive tells",
    "parents.py": "a driver that has looked in vain",
}


def test_nobody_writes_past_the_bell():
    """A writer that forgets to ring would cost its run half a minute, and nobody would find out why."""
    found = set()
    for path in [*(SRC / "engine").rglob("*.py"), *(SRC / "cli").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(ast.Attribute(ast.Name("store") | ast.Attribute(_, "store"), verb)) if (
                    verb == "append" or verb.startswith("rewrite")
                ):
                    found.add(path.name)
    assert found == set(SILENT)


# -- another one ----------------------------------------------------------------------------------------------

_undone = []


@sf.effect
def rent():
    return "rented"


@rent.undo
def give_back(result):
    _undone.append(result)


@sf.workflow
def renting():
    with sf.saga():
        rent()
        sf.wait_event("never")


def test_engine_that_only_hears_the_bell_drives_every_run_to_its_end(hand, monkeypatch):
    """Starts, delays, sleeps, answers, events and children: no wake-up is lost, though nobody searches the store."""
    monkeypatch.setattr("surefoot.engine.drive.takeover.UNWIND_SECONDS", 0.0)
    with sf.Worker():
        doubling.start("first", 1)
        doubling.using(delay="0.2s").start("later", 2)
        napping.start("nap", 0.3)
        approved.start("asking")
        told.start("listening")
        family.start("family", 5)
        wait_until(lambda: "RunStopped" in kinds("asking"))
        sf.get_run("asking").answer("approve#1", value=True)
        sf.send_event("listening", "go", 3)
        runs = ("first", "later", "nap", "asking", "listening", "family")
        wait_until(ended(*runs))
    assert [sf.get_run(run).result() for run in runs] == [2, 4, "awake", True, 3, 20]


def test_answers_at_any_moment_wake_their_runs(hand):
    """Before the question is on record, beside it, and after the run stands still."""
    runs = [f"r{n}" for n in range(20)]
    senders = [threading.Timer(n * 0.01, sf.send_event, (run, "go", n)) for n, run in enumerate(runs)]
    with sf.Worker():
        for run, sender in zip(runs, senders, strict=True):
            told.start(run)
            sender.start()
        for sender in senders:
            sender.join()
        wait_until(ended(*runs))
    assert [sf.get_run(run).result() for run in runs] == list(range(20))


def test_cancelled_run_is_ended_by_the_engine_and_by_nobody_else(hand):
    """Whoever cancels may not have the code: what the run did would stay done, though somebody could undo it."""
    _undone.clear()
    with pytest.raises(sf.WaitingForAnswer):
        renting.run("renting")

    sf.get_run("renting").cancel(by="ann")

    assert (sf.get_run("renting").status, _undone) == ("waiting", [])
    with sf.Worker():
        wait_until(ended("renting"))
    assert (sf.get_run("renting").status, _undone) == ("cancelled", ["rented"])


def test_what_was_refused_once_is_driven_again_by_what_the_drive_answers(hand):
    """Nobody rings for a run that its own driver let go of."""
    run = broken.start("broken")
    with sf.Worker():
        wait_until(lambda: run.status == "stopped")
    assert isinstance(run.stop, sf.Quarantined)
    assert rung_by(hand, lambda: run.release(by="ann")) == [("broken", True)]
