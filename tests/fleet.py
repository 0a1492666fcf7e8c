"""Several worker processes at work while everything around them fails, and what must hold of it afterwards.

`Fleet` starts worker processes and ends them. `Chaos` strikes them, their server and their network, from a seed. `Person`
does what people do meanwhile: looks at runs that stand still, looks at the ledger, and answers truthfully. `hold`
holds journals and ledger against each other at the end:

- every run has ended with the right result, and every seal holds;
- everything the ledger has was done under a claim of that very process, and every effect after an intent of the same
  claim, attempt and key that is in the journal: each at most once;
- an effect has one key, and a key one effect; what is recorded as done was done, and never begun again afterwards;
- an effect that asks was done once, since the person told the truth;
- what anybody once read in a journal is still there.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import surefoot as sf
from surefoot.store.open import close_all
from tests import fleet_app as app
from tests.fleet_app import ON_ITS_WAY_SECONDS
from tests.ledger import ask, ledger_process
from tests.postgres import Server
from tests.proxy import CUT_AFTER, CUT_BEFORE, FREEZE, PASS, Proxy
from tests.working import wait_until

ENDED = ("done", "failed", "cancelled")
CONCURRENCY = 5
"""Of each worker: few, so that all of them are busy, and a blow finds something wherever it strikes."""
IDLE_SECONDS = 10.0
"""So long a blow waits for somebody to strike."""
LETTING_GO = ("RunCreated", "RunReleased", "RunStopped", "RunSuspended")
VISITORS = ("EffectSettled", "QuarantineLifted", "ChildEnded", "EffectLandedLate")
WORKFLOWS = ("order", "order_async", "family")


class Fleet:
    """Worker processes on one store, with one ledger, gone when it is closed."""

    def __init__(self, folder: Path, store: str, ledger: int, **hurry: float) -> None:
        """`hurry`: see `fleet_app`."""
        self.folder = folder
        self.store = store
        self.ledger = ledger
        self._env = {"LEDGER": str(ledger), "FLEET": json.dumps(hurry)}
        self._lock = threading.Lock()
        self._keeping = threading.Lock()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._died: dict[int, float] = {}
        self._posts: list[tuple[str, subprocess.Popen[bytes]]] = []
        self.log = folder / "workers.log"

    def start(self, store: str | None = None) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "surefoot", "worker", "tests.fleet_app", "--concurrency", str(CONCURRENCY)],
                cwd=self.folder, stdout=log, stderr=log,
                env={
                    **os.environ, **self._env, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "SUREFOOT_STORE": store or self.store,
                },
            )  # fmt: skip
        with self._lock:
            self._workers.append(worker)
        return worker

    def man(self, stores: Sequence[str]) -> None:
        """One worker for each of these, from now on."""
        self._posts = [(store, self.start(store)) for store in stores]

    def keep_up(self) -> None:
        """As a process manager does: whoever has ended is started again. One that starts while the server is away ends
        with 1; 2 and 4 say that a person is needed, and nothing here is a reason for that."""
        with self._keeping:
            for at, (store, worker) in enumerate(self._posts):
                if worker.poll() is not None:
                    assert worker.returncode in (-signal.SIGKILL, 1), self.told()
                    self._posts[at] = (store, self.start(store))

    def living(self) -> list[subprocess.Popen[bytes]]:
        with self._lock:
            for worker in self._workers:
                if worker.poll() is not None:
                    self._died.setdefault(worker.pid, time.monotonic())
            return [worker for worker in self._workers if worker.pid not in self._died]

    def is_long_gone(self, pid: int) -> bool:
        """Whether that process is dead, and nothing of it can still be on its way."""
        self.living()
        died = self._died.get(pid)
        return died is not None and time.monotonic() - died > ON_ITS_WAY_SECONDS

    def busy(self) -> list[subprocess.Popen[bytes]]:
        """Those that drive a run."""
        running = (run.entries() for run in sf.runs(status="running", limit=1000))
        pids = {[entry.data["pid"] for entry in one if entry.kind == "RunAdopted"][-1] for one in running}
        return [worker for worker in self.living() if worker.pid in pids]

    def at(self, post: int) -> subprocess.Popen[bytes]:
        return self._posts[post][1]

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()

    def end_all(self, seconds: float = 60.0) -> None:
        """Tell all that live to stop; they do, in good order."""
        leaving = self.living()
        for worker in leaving:
            worker.terminate()
        for worker in leaving:
            # One that was started a moment ago does not listen yet, and has nothing to finish.
            assert worker.wait(seconds) in (0, -signal.SIGTERM), self.told()

    def told(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def close(self) -> None:
        for worker in self._workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()


class Weather(Proxy):
    """The network of one worker."""

    def reset(self) -> None:
        """Every connection is gone, in the middle of whatever."""
        lines, self._lines = self._lines, []
        for line in lines:
            line.close()


Blow = tuple[float, Callable[[], None]]
"""What happens so many seconds after the last one."""


class Chaos:
    """Blows from a seed, one after the other, in a thread of its own. `counts` says how many of each there were."""

    def __init__(self, fleet: Fleet, *, seed: int, lease: float) -> None:
        self.fleet = fleet
        self.lease = lease
        self.seed = seed
        self.luck = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self._over = threading.Event()
        self._zombie: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    def begin(self, blows: Sequence[Blow]) -> None:
        def strike() -> None:
            try:
                for pause, blow in blows:
                    if self._over.wait(pause):
                        break
                    blow()
            except BaseException as error:
                self.failure = error
            finally:
                self._wake()

        self._thread = threading.Thread(target=strike, name="chaos", daemon=True)
        self._thread.start()

    @property
    def rages(self) -> bool:
        if self.failure is not None:
            raise self.failure
        return self._thread is not None and self._thread.is_alive()

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(60)

    def schedule(
        self, seconds: float, blow: Callable[[], None], every: float, *others: tuple[float, Callable[[], None]]
    ) -> list[Blow]:
        """One kind of blow again and again, and others at their time."""
        at, timed = 0.0, list(others)
        while (at := at + every * self.luck.uniform(0.6, 1.4)) < seconds:
            timed.append((at, blow))
        timed.sort(key=lambda one: one[0])
        return [(when - before, strike) for (before, _), (when, strike) in pairwise([(0.0, blow), *timed])]

    # -- blows ------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """SIGKILL to one, and another in its place."""
        victim = self._victim()
        if victim is not None:
            self.fleet.kill(victim)
            self.counts["kills"] += 1
        self.fleet.keep_up()

    def pause(self) -> None:
        """SIGSTOP, until `resume` or the end."""
        self._zombie = self._victim()
        if self._zombie is not None:
            self._zombie.send_signal(signal.SIGSTOP)
            self.counts["pauses"] += 1

    def _victim(self) -> subprocess.Popen[bytes] | None:
        """One that drives something, as soon as there is one: on a slow machine others have hardly begun. While one is
        paused nobody is waited for: it may hold the lock of a SQLite file, and then nobody begins anything.
        """
        found: list[subprocess.Popen[bytes]] = []

        def look() -> bool:
            found[:] = [worker for worker in self.fleet.busy() if worker is not self._zombie]
            return bool(found) or self._over.wait(0.1)

        with suppress(AssertionError):  # All may be done.
            wait_until(look, IDLE_SECONDS if self._zombie is None else 0.0)
        return self.luck.choice(found) if found else None

    def resume(self) -> None:
        self._wake()

    def _wake(self) -> None:
        if self._zombie is not None:
            self._zombie.send_signal(signal.SIGCONT)
            self._zombie = None

    def restart(self, server: Server) -> None:
        """The server stops at once, as in a crash, and comes back."""
        server.stop(signal.SIGQUIT)
        self._over.wait(self.luck.uniform(0.0, 1.5))
        server.start()
        self.counts["restarts"] += 1

    def trouble(self, network: Weather) -> None:
        match self.luck.randrange(4):
            case 0:
                network.arm(CUT_BEFORE)
                self.counts["requests dropped"] += 1
            case 1:
                network.arm(CUT_AFTER)
                self.counts["answers dropped"] += 1
            case 2:
                network.reset()
                self.counts["resets"] += 1
            case _:
                network.arm(FREEZE)
                self._over.wait(self.luck.uniform(0.05, 0.8))
                network.arm(PASS)
                self.counts["delays"] += 1

    def cut_off(self, network: Weather, post: int) -> None:
        """A partition: nothing moves for longer than the lease. It begins when that worker drives something."""
        with suppress(AssertionError):  # It may stay idle: then it is cut off for nothing.
            wait_until(lambda: self.fleet.at(post) in self.fleet.busy() or self._over.wait(0.1), IDLE_SECONDS)
        network.arm(FREEZE)
        self._over.wait(self.lease * 1.5)
        network.arm(PASS)
        self.counts["partitions"] += 1


class Person:
    """Looks after runs that stand still. Believes the ledger, and only once the process in question is gone."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.settled: Counter[str] = Counter()
        self.seen: dict[str, list[tuple[int, int, str]]] = {}
        """What was once read of each journal."""

    def go_round(self) -> Counter[str]:
        """Answer what can be answered; how many runs there are by status."""
        statuses: Counter[str] = Counter()
        for run in sf.runs(limit=100_000):
            status = run.row.status if run.row is not None else run.status
            statuses[status] += 1
            if status == "stopped":
                self._answer(run)
        return statuses

    def read(self, run: str) -> None:
        """Remember what is there now: it has to stay."""
        self.seen[run] = outline(sf.get_run(run).entries())

    def _answer(self, run: sf.Run) -> None:
        with suppress(sf.UsageError):  # Somebody took it up again in this moment, or drives another branch of it.
            for stop in run.stops:
                match stop:
                    case sf.InDoubt():
                        self._settle(run, stop.address)
                    case sf.Quarantined():
                        run.release(by="ann", note="killed from outside")
                        self.settled["released"] += 1
                    case _:
                        raise AssertionError(f"{run.id}: {stop}")

    def _settle(self, run: sf.Run, address: str) -> None:
        entries = run.entries()
        intents = [entry for entry in entries if entry.kind == "EffectIntended" and entry.data["address"] == address]
        pids = {entry.epoch: entry.data["pid"] for entry in entries if entry.kind == "RunAdopted"}
        late = {(entry.data["address"], entry.data["attempt"]) for entry in entries if entry.kind == "EffectLandedLate"}
        begun = [intent for intent in intents if (address, intent.data.get("attempt", 1)) not in late]
        if not all(self.fleet.is_long_gone(pids[intent.epoch]) for intent in begun):
            return  # It may be about to do it.
        lines = ask(self.fleet.ledger, do="look", room=run.id, what=address)
        if lines:
            run.settle(address, happened=lines[0]["value"], by="ann", note="seen in the ledger")
            self.settled["happened"] += 1
        else:
            run.settle(address, not_happened=True, by="ann", note="not in the ledger")
            self.settled["not happened"] += 1


class Orders:
    """The runs of a test: mixed workflows, some of them asleep for a while."""

    def __init__(self, count: int, *, seed: int, naps: Sequence[float], effects: int = app.EFFECTS) -> None:
        luck = random.Random(seed)
        self.effects = effects
        self.wanted = [
            (f"{WORKFLOWS[n % 3]}-{n}", WORKFLOWS[n % 3], luck.choice(naps) if n % 4 == 0 else 0.0)
            for n in range(count)
        ]
        self.started = 0

    def start(self, count: int) -> None:
        """The next so many."""
        for run, workflow, nap in self.wanted[self.started : self.started + count]:
            started = getattr(app, workflow).start(run, self.effects, nap)
            if asyncio.iscoroutine(started):
                asyncio.run(started)
            self.started += 1

    def runs(self) -> Iterator[tuple[str, int]]:
        """Every run there has to be, children too, with its result."""
        for run, workflow, _ in self.wanted:
            yield run, app.expected(workflow, self.effects)
            if workflow == "family":
                for child in ("a", "b"):
                    yield f"{run}/{child}", app.expected("order", self.effects // 3)


def work_through(
    fleet: Fleet, chaos: Chaos, orders: Orders, blows: Sequence[Blow], *,
    workers: Sequence[str], seconds: float,
) -> str:  # fmt: skip
    """Orders come in while the chaos rages; then the fleet is renewed, and everything has to end. What was seen."""
    person, pause, luck = Person(fleet), threading.Event(), random.Random(len(orders.wanted))
    deadline = time.monotonic() + seconds
    fleet.man(workers)
    orders.start(len(orders.wanted) // 3)
    length = sum(gap for gap, _ in blows)
    began = time.monotonic()
    chaos.begin(blows)
    while chaos.rages:
        due = (time.monotonic() - began) / length * len(orders.wanted) * 1.2
        with suppress(sf.StoreUnavailable):  # They try again later, as people do.
            orders.start(max(0, int(due) - orders.started))
            person.go_round()
            for run, _, _ in luck.sample(orders.wanted[: orders.started], 5):
                person.read(run)
        fleet.keep_up()
        assert time.monotonic() < deadline, fleet.told()
        pause.wait(0.1)
    orders.start(len(orders.wanted))
    fleet.end_all()
    fleet.man(workers)
    runs = dict(orders.runs())
    while (statuses := person.go_round())["done"] < len(runs):
        assert time.monotonic() < deadline, (statuses, fleet.told())
        pause.wait(0.1)
    fleet.end_all()
    seen = hold(runs, fleet.ledger, person.seen)
    assert seen["takeovers"] > 0, "nothing of it struck anybody"
    told = [f"{count} {what}" for what, count in sorted(chaos.counts.items())]
    told += [f"in doubt and settled by a person: {dict(sorted(person.settled.items()))}"]
    summary = "; ".join([*told, *(f"{count} {what}" for what, count in seen.items())])
    print(f"seed {chaos.seed}: {summary}")  # noqa: T201 - shown when it fails, and by `pytest -s`
    return summary


# --- what must hold ----------------------------------------------------------------------------------


def outline(entries: list[sf.JournalEntry]) -> list[tuple[int, int, str]]:
    return [(entry.seq, entry.epoch, entry.kind) for entry in entries]


def hold(runs: dict[str, int], ledger: int, seen: dict[str, list[tuple[int, int, str]]]) -> dict[str, int]:
    """Hold every run against the ledger and against what was once read of it. What there was, counted."""
    keys: dict[str, tuple[str, str]] = {}
    counts: dict[str, int] = defaultdict(int)
    for name, result in runs.items():
        run = sf.get_run(name)
        assert run.verify() > 0
        assert (run.status, run.result()) == ("done", result), name
        entries = run.entries()
        assert outline(entries)[: len(seen.get(name, ()))] == seen.get(name, []), f"{name}: what was read is gone"
        _Held(name, entries, ask(ledger, do="look", room=name, what="*")).hold(keys, counts)
    return {"runs": len(runs), **counts}


class _Held:
    """One run's journal, and its room in the ledger."""

    def __init__(self, run: str, entries: list[sf.JournalEntry], lines: list[dict[str, Any]]) -> None:
        self.run = run
        self.entries = entries
        self.lines = lines
        self.claims = {entry.epoch: entry.data["pid"] for entry in self._of("RunAdopted")}
        self.intents: dict[tuple[str, int], sf.JournalEntry] = {}
        for entry in self._of("EffectIntended"):
            assert self.intents.setdefault(_attempt(entry), entry) is entry, f"{run}: {_attempt(entry)} intended twice"

    def _of(self, *kinds: str) -> Iterator[sf.JournalEntry]:
        return (entry for entry in self.entries if entry.kind in kinds)

    def _lines(self, do: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["do"] == do]

    def hold(self, keys: dict[str, tuple[str, str]], counts: dict[str, int]) -> None:
        epochs = [entry.epoch for entry in self.entries]
        assert epochs == sorted(epochs), f"{self.run}: an entry of an older claim behind a newer one"
        for line in self.lines:
            assert self.claims.get(line["epoch"]) == line["pid"], f"{self.run}: done without a claim: {line}"
        self._hold_effects(keys)
        self._hold_steps()
        self._count(counts)

    def _hold_effects(self, keys: dict[str, tuple[str, str]]) -> None:
        charges = self._lines("charge")
        for line in charges:
            intent = self.intents.get((line["what"], line["attempt"]))
            assert intent is not None, f"{self.run}: done without an intent: {line}"
            assert (intent.epoch, intent.data["key"]) == (line["epoch"], line["key"]), (intent, line)
            assert keys.setdefault(line["key"], (self.run, line["what"])) == (self.run, line["what"])
        done = Counter((line["what"], line["attempt"]) for line in charges)
        assert not [call for call, times in done.items() if times > 1], f"{self.run}: one attempt, done twice"
        per_effect = Counter(line["what"] for line in charges)
        assert set(per_effect) == {address for address, _ in self.intents}, f"{self.run}: an effect is lost"
        for entry in self._of("EffectDone"):
            assert done[_attempt(entry)] == 1, f"{self.run}: recorded as done, and not in the ledger: {entry}"
        for address, times in per_effect.items():
            assert len({line["key"] for line in charges if line["what"] == address}) == 1
            if self._policy(address) == "ask":
                assert times == 1, f"{self.run}: {address} asks, and was done {times} times"
        self._hold_ends()

    def _hold_ends(self) -> None:
        """Once an effect has its outcome, nothing of it is begun again; and each has exactly one."""
        ends = Counter(entry.data["address"] for entry in self._ends())
        assert set(ends.values()) <= {1}, ends
        assert set(ends) == {address for address, _ in self.intents}
        for end in self._ends():
            assert all(
                intent.seq < end.seq for (address, _), intent in self.intents.items() if address == end.data["address"]
            ), f"{self.run}: begun again after its outcome was recorded: {end}"

    def _ends(self) -> list[sf.JournalEntry]:
        settled = [entry for entry in self._of("EffectSettled") if entry.data["happened"]]
        return [*self._of("EffectDone"), *settled]

    def _hold_steps(self) -> None:
        """A recorded step is not run again: no claim from after its record did it."""
        done = {entry.data["address"]: entry.epoch for entry in self._of("StepDone") if "look" in entry.data["address"]}
        steps = self._lines("step")
        assert {line["what"] for line in steps} == set(done), f"{self.run}: a step is lost"
        for line in steps:
            assert line["epoch"] <= done[line["what"]], f"{self.run}: recorded, and run again: {line}"
        times = Counter((line["what"], line["epoch"]) for line in steps)
        assert set(times.values()) <= {1}, f"{self.run}: a step was run twice under one claim: {times}"

    def _policy(self, address: str) -> str:
        return next(str(intent.data["policy"]) for (name, _), intent in self.intents.items() if name == address)

    def _takeovers(self) -> int:
        """How often the run was claimed while another claim was in force."""
        ours = [entry.kind for entry in self.entries if entry.kind not in VISITORS]
        return sum(kind == "RunAdopted" and before not in LETTING_GO for before, kind in pairwise(ours))

    def _count(self, counts: dict[str, int]) -> None:
        counts["effects"] += len({address for address, _ in self.intents})
        counts["takeovers"] += self._takeovers()
        for what, do in (("effects done again under the same key", "charge"), ("steps run again", "step")):
            lines = [line["what"] for line in self._lines(do)]
            counts[what] += len(lines) - len(set(lines))


def _attempt(entry: sf.JournalEntry) -> tuple[str, int]:
    return entry.data["address"], entry.data.get("attempt", 1)


@contextmanager
def fleet_on(folder: Path, store: str, **hurry: float) -> Iterator[Fleet]:
    """A fleet with a ledger of its own. Nothing of it is left afterwards."""
    with ledger_process() as ledger:
        fleet = Fleet(folder, store, ledger, **hurry)
        try:
            yield fleet
        finally:
            close_all()
            fleet.close()
