"""Who lives, what it serves, and what proves that a worker is dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import msgspec
import pytest

import surefoot as sf
from surefoot.core.doubt import open_questions
from surefoot.core.entry import EffectIntended, RunAdopted
from surefoot.core.key import idempotency_key
from surefoot.core.seal import GENESIS, Sealer, checked_body
from surefoot.core.timer import after
from surefoot.engine.declare import code
from surefoot.engine.drive import start
from surefoot.engine.process import config, journal
from surefoot.store.contract import Extend, Serving
from surefoot.view.page import page
from tests.working import ended, wait_until

APP = """
import os, sys, time
import surefoot as sf

@sf.effect{options}
def pay(n):
    with open("begun", "a") as file:
        file.write("x")
    with open("gate") as gate:
        gate.read()
    with open("ledger", "a") as file:
        file.write(f"paid {{n}}\\n")
    return n

@pay.check
def _(n):
    return sf.happened(n) if os.path.exists("ledger") and f"paid {{n}}" in open("ledger").read() else sf.not_happened()

@sf.workflow
def order(n):
    return pay(n)
"""


class Crew:
    """Worker processes with one app in one folder, gone at the end."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder, self.store = folder, store
        self.workers: list[subprocess.Popen[bytes]] = []
        os.mkfifo(folder / "gate")
        self.gate = os.open(folder / "gate", os.O_RDWR)

    def write(self, options: str = "") -> None:
        (self.folder / "orders.py").write_text(textwrap.dedent(APP.format(options=options)))

    def queue(self, run: str, n: int) -> None:
        self.python("-c", f"import orders; orders.order.start({run!r}, {n})")

    def python(self, *words: str) -> None:
        subprocess.run([sys.executable, *words], cwd=self.folder, env=self.env, check=True, timeout=60)

    @property
    def env(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder), *filter(None, sys.path)])
        return {**os.environ, "SUREFOOT_STORE": self.store, "PYTHONPATH": path}

    def start(self) -> subprocess.Popen[bytes]:
        with (self.folder / "workers.log").open("ab") as log:
            words = [sys.executable, "-m", "surefoot", "worker", "orders"]
            worker = subprocess.Popen(words, cwd=self.folder, env=self.env, stdout=log, stderr=log)
        self.workers.append(worker)
        return worker

    def begun(self) -> int:
        file = self.folder / "begun"
        return len(file.read_text()) if file.exists() else 0

    def lines(self) -> list[str]:
        file = self.folder / "ledger"
        return file.read_text().splitlines() if file.exists() else []

    def open_gate(self) -> None:
        """Whoever waits there goes on, and nobody waits any more."""
        if self.gate >= 0:
            os.close(self.gate)
            self.gate = -1
            (self.folder / "gate").unlink()
            (self.folder / "gate").touch()

    def log(self) -> str:
        return (self.folder / "workers.log").read_text()

    def close(self) -> None:
        if self.gate >= 0:
            os.close(self.gate)
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait()


@pytest.fixture
def crew(tmp_path, store):
    made = Crew(tmp_path, store)
    yield made
    made.close()


def test_worker_says_what_it_serves(store):
    """Whoever rolls out a new version, or wonders why nothing moves, can see who is there."""

    @sf.workflow
    def served() -> None: ...

    with sf.Worker(queue=["fast"]) as worker:
        wait_until(lambda: any(one.serving for one in worker.runtime.store.workers()))
        (seen,) = [one for one in worker.runtime.store.workers() if one.serving]
    after = config.runtime(create=False).store

    assert seen.worker == after.worker
    assert (seen.pid, seen.host) == (os.getpid(), os.uname().nodename)
    assert seen.serving == Serving(("served",), ("fast",), code.digest())
    assert seen.since <= time.time_ns() // 1000
    wait_until(lambda: all(one.serving is None for one in after.workers()))


def test_claim_of_a_killed_worker_is_taken_over_at_once(crew):
    """Its lock is gone with it, on PostgreSQL too: nobody waits for its lease."""
    crew.write('(in_flight="0s")')
    crew.queue("r", 1)
    first = crew.start()
    wait_until(lambda: crew.begun() == 1)
    first.kill()
    first.wait()
    crew.open_gate()
    killed = time.monotonic()
    crew.start()

    wait_until(ended("r"), 30)

    assert time.monotonic() - killed < 9.0, "a lease is ten seconds"
    assert crew.lines() == ["paid 1"]


def test_paused_worker_is_not_proven_dead(crew):
    """It holds its lock: it may go on any moment."""
    crew.write()
    crew.queue("r", 1)
    first = crew.start()
    wait_until(lambda: crew.begun() == 1)
    store = config.runtime(create=False).store
    claimant = sf.get_run("r").state().claimant
    assert claimant is not None
    first.send_signal(signal.SIGSTOP)

    assert not store.proven_dead(claimant.worker)
    assert store.alive(claimant.worker)
    first.send_signal(signal.SIGCONT)
    first.kill()
    first.wait()
    wait_until(lambda: store.proven_dead(claimant.worker))
    assert not store.alive(claimant.worker)


def test_effect_that_lands_after_the_claim_was_lost_is_announced_at_both_ends(store, caplog, monkeypatch):
    """Paused in the middle of it, taken over meanwhile: what it did must not be done again without a look."""
    told: list[str] = []
    monkeypatch.setattr(config.settings, "alerts", (told.append,))

    @sf.effect
    def pay(n: int) -> int:
        taken_over_by_another(sf.run_id())
        return n

    @sf.workflow
    def paying(n: int) -> int:
        return pay(n)

    with pytest.raises(sf.Fenced):
        paying.run("r", 7)

    state = sf.get_run("r").state()
    assert [(late.address, late.attempt, late.pid, late.outcome) for late in state.landed_late] == [
        ("pay#1", 1, os.getpid(), "returned")
    ]
    assert "executed here, too late" in caplog.text
    assert any("executed here, too late" in text for text in told)
    (call,) = page(state, driven=False, now=0).calls
    assert call.status == "in doubt"
    assert page(state, driven=False, now=0).landed_late[0].startswith("pay#1 (attempt 1) by worker ")
    assert "says that it executed it too late to be recorded" in str(open_questions(state)[0].message)


def test_what_was_settled_as_not_happened_is_in_doubt_again_when_it_lands(store):
    """A check or a person looked too early."""

    @sf.effect
    def pay(n: int) -> int:
        taken_over_by_another(sf.run_id())
        sf.get_run(sf.run_id()).settle("pay#1", not_happened=True)
        return n

    @sf.workflow
    def paying(n: int) -> int:
        return pay(n)

    with pytest.raises(sf.Fenced):
        paying.run("r", 7)

    assert [past.address for past in sf.get_run("r").state().in_doubt()] == ["pay#1"]


def taken_over_by_another(run: str) -> None:
    """Another process, which is dead by now, has claimed the run."""
    runtime = config.runtime(create=False)
    found = journal.load(runtime.store, run)
    assert found is not None
    state, head = found
    kind, body, _ = checked_body(RunAdopted("f" * len(runtime.store.worker), "elsewhere", 1, "claim"))
    record = Sealer(runtime.store.id, run).seal(
        seq=head.seq + 1, epoch=state.epoch + 1, at=runtime.clock.now(), kind=kind, body=body, previous=head.seal
    )
    assert runtime.store.append([Extend(run, head, [record])]) == [None]


def test_silent_claimant_is_not_believed_dead_without_a_time_bound(store, monkeypatch):
    """Only its lease has run out. It may be in the call still, so that "not there" proves nothing: a person is asked."""
    monkeypatch.setattr(config.settings, "in_flight_seconds", 0.0)

    def app(**options):
        @sf.effect(**options)
        def pay(n: int) -> int:
            done.append(n)
            return n

        @pay.check
        def _(n):
            return sf.happened(n) if n in done else sf.not_happened()

        @sf.workflow
        def paying(n: int) -> int:
            return pay(n)

        return paying

    done: list[int] = []
    store_ = config.runtime(create=True).store
    cut_off_elsewhere(app(), "r", timeout=None)
    monkeypatch.setattr(type(store_), "proven_dead", lambda *_: False)

    with pytest.raises(sf.InDoubt, match=r"may still be running in worker ffffffff on host elsewhere \(pid 1\)"):
        app().run("r", 7)
    assert not done

    cut_off_elsewhere(app(timeout="1s"), "timed", timeout=1.0)
    assert app(timeout="1s").run("timed", 7) == 7
    assert done == [7]

    cut_off_elsewhere(app(), "proven", timeout=None)
    monkeypatch.setattr(type(store_), "proven_dead", lambda *_: True)
    assert app().run("proven", 7) == 7


def cut_off_elsewhere(workflow, run: str, *, timeout: float | None) -> None:
    """A run whose claimant, on another host, has begun `pay#1`, and was not heard of since."""
    runtime = config.runtime(create=True)
    plan = workflow.definition.plan(run, (7,), {})
    created = start.created_entry(plan, start.Options())
    key = idempotency_key("", run, 1, "pay#1")
    deadline = None if timeout is None else after(runtime.clock.read(), timeout)
    args = msgspec.Raw(plan.args)
    intent = EffectIntended("pay#1", plan.digest, args, key, "check", deadline=deadline)
    adopted = RunAdopted("f" * len(runtime.store.worker), "elsewhere", 1, "claim")
    records, previous = [], GENESIS
    for seq, (entry, epoch) in enumerate([(created, 0), (adopted, 1), (intent, 1)], 1):
        kind, body, _ = checked_body(entry)
        sealed = Sealer(runtime.store.id, run).seal(
            seq=seq, epoch=epoch, at=runtime.clock.now(), kind=kind, body=body, previous=previous
        )
        previous = sealed.seal
        records.append(sealed)
    assert runtime.store.append([Extend(run, None, records)]) == [None]
