"""PostgreSQL and workers. `python -m bench.fleet NAME FOLDER URL …` measures once and prints figures as JSON.

As in `work`: a process of its own for each measurement, a database of its own, real commits. What a worker costs or
takes is measured from outside it, in processes that are started here. The workflows are those that they serve.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import psycopg
from msgspec.structs import replace

import surefoot as sf
from bench.moving import copied
from bench.work import RUN, RUNS, STEPS_PER_RUN, Figures, async_steps, blocking_step, peak_mb, store_in
from surefoot.core.seal import GENESIS, Record, Sealer
from surefoot.engine.process.meters import meters
from surefoot.store.contract import Extend, IndexRow, RunQuery

W1_STEPS, W1_TURNS = 50, 10
W2_BARE_ROWS = 100
STARTED_SINGLY = 30
DRAINED, DRAINERS, DRAINER_CONCURRENCY = 1_000, 2, 20
SLEEPERS, COPIED_AT_ONCE = 10_000, 500
IDLE_SECONDS = 20.0
KILLED = 10
LISTED, LISTINGS = 100_000, 10
PATIENCE_SECONDS = 120.0

# --- workflows -----------------------------------------------------------------------------------

executed: list[str] = []
"""Runs whose step was executed by this process, each time it was."""


@sf.step
def moment() -> float:
    """On the clock that all processes of a machine share."""
    executed.append(sf.run_id())
    return time.monotonic()


@sf.workflow
def short() -> float:
    return moment()


laps: list[float] = []
turns: list[Callable[[int], None]] = []


@sf.workflow
def steps_in_turns(count: int, of: int) -> None:
    for _ in range(count):
        for turn in turns:
            turn(of)
        started = perf_counter()
        for n in range(of):
            blocking_step(n)
        laps.append(perf_counter() - started)


@sf.workflow
def asleep(sleeps: bool) -> None:
    if sleeps:
        sf.sleep("7d")
    else:
        sf.wait_event("never")


@sf.workflow
def killed_once() -> float:
    """The process that records its first step is killed right behind it."""
    moment()
    if "BENCH_DIES" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return moment()


# --- one process ---------------------------------------------------------------------------------


class Bare:
    """The loop that others are compared with: a row of like size and a commit, over a connection of its own.

    With BEGIN and COMMIT, as psycopg sends them; and in autocommit, a single round trip. Taken in short turns before,
    between and after what is measured.
    """

    def __init__(self, url: str, body_bytes: str) -> None:
        self._body = os.urandom(int(body_bytes))
        self._rows = 0
        self._seconds = {False: 0.0, True: 0.0}
        self._db = psycopg.connect(url)
        for setting in ("fsync", "synchronous_commit"):
            if self._db.execute(f"SHOW {setting}").fetchall() != [("on",)]:
                raise AssertionError("the reference loop is not durable here")
        self._db.execute("CREATE TABLE bare (body bytea)")
        self._db.commit()
        for _ in range(20):  # psycopg has prepared the statement by then
            self.commit()

    def commit(self) -> None:
        self._db.execute("INSERT INTO bare VALUES (%b)", (self._body,))
        self._db.commit()

    def turn(self, rows: int) -> None:
        for autocommit in (False, True):
            self._db.autocommit = autocommit
            started = perf_counter()
            for _ in range(rows):
                self.commit()
            self._seconds[autocommit] += perf_counter() - started
        self._db.autocommit = False
        self._rows += rows

    def compared(self, rate: float) -> Figures:
        bare, autocommit = self._rows / self._seconds[False], self._rows / self._seconds[True]
        self._db.close()
        return {"rate": rate, "ratio": rate / bare, "autocommit_ratio": rate / autocommit, "bare": bare}


def w1(folder: Path, url: str, body_bytes: str) -> Figures:
    """One run, whose workflow pauses now and then for a turn of the bare loop."""
    bare = Bare(url, body_bytes)
    bound = steps_in_turns.using(store=url)
    bound.run("warm-up", 1, 20)
    laps.clear()
    turns.append(bare.turn)
    bound.run(RUN, W1_TURNS, W1_STEPS)
    return bare.compared(W1_STEPS / statistics.mean(laps))


def w2(folder: Path, url: str, body_bytes: str) -> Figures:
    """Runs that were queued before, from the moment the worker looks to the end of the last one."""
    bare = Bare(url, body_bytes)
    asyncio.run(_queue(url, "warm-up", 20))
    _drained(url, 20)
    asyncio.run(_queue(url, "run", RUNS))
    bare.turn(W2_BARE_ROWS)
    spent = Spent(url)
    seconds = _drained(url, RUNS)
    costs = spent.per_step(RUNS * STEPS_PER_RUN)
    bare.turn(W2_BARE_ROWS)
    return bare.compared(RUNS * STEPS_PER_RUN / seconds) | costs


def _drained(url: str, count: int) -> float:
    """The seconds that one worker takes."""
    worker = sf.Worker(store=url, workflows=[async_steps], concurrency=RUNS)
    started = perf_counter()
    with worker:
        _wait(lambda: sum(worker.ended.values()) >= count)
        seconds = perf_counter() - started
    if worker.ended != {"done": count}:
        raise AssertionError(f"runs ended otherwise: {worker.ended}")
    return seconds


class Spent:
    """What a fleet costs on both sides: CPU here and in the server, transactions, its log and its disk."""

    def __init__(self, url: str) -> None:
        self._db = psycopg.connect(url, autocommit=True)
        self._before = self._now()

    def _now(self) -> list[float]:
        log, disk = self._db.execute(
            "SELECT pg_current_wal_lsn() - '0/0', sum(pg_total_relation_size(oid)) FROM pg_class "
            "WHERE relnamespace = 'surefoot'::regnamespace AND relkind = 'r'"
        ).fetchall()[0]
        server = _cpu_seconds(_backends(self._db))
        return [process_time(), server, float(log), float(disk), meters.entries, sum(meters.entry_bits)]

    def per_step(self, steps: int) -> Figures:
        cpu, server, log, disk, entries, transactions = (
            after - before for after, before in zip(self._now(), self._before, strict=True)
        )
        self._db.close()
        return {
            "cpu_us": cpu / steps * 1e6,
            "server_us": server / steps * 1e6,
            "log_bytes": log / steps,
            "disk_bytes": disk / steps,
            "entries_together": entries / transactions,
        }


def _backends(db: psycopg.Connection[Any]) -> list[int]:
    """The server's processes that work for surefoot in this database."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'surefoot' AND datname = current_database()"
    return [pid for (pid,) in db.execute(query).fetchall()]


async def _queue(url: str, name: str, count: int) -> None:
    bound = async_steps.using(store=url)
    await asyncio.gather(*(bound.start(f"{name}-{n}", STEPS_PER_RUN) for n in range(count)))


def _wait(is_so: Callable[[], bool], *, look_seconds: float = 0.005) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE_SECONDS:g} s")
        time.sleep(look_seconds)


# --- several processes -----------------------------------------------------------------------------


def latency(folder: Path, url: str, body_bytes: str) -> Figures:
    """From before `start` here to the beginning of the first step in an idle worker, and a bare commit in turn."""
    bound, bare = short.using(store=url), Bare(url, body_bytes)
    commits, waits = [], []
    with _worker_command(url):
        bound.start("warm-up").result(timeout=PATIENCE_SECONDS)
        for n in range(STARTED_SINGLY):
            time.sleep(random.uniform(0.02, 0.06))  # the worker has come to rest, and at no particular moment
            started = perf_counter()
            bare.commit()
            commits.append(perf_counter() - started)
            asked = time.monotonic()
            run = bound.start(f"run-{n}")
            time.sleep(0.02)  # so that asking for the result does not take part
            waits.append(run.result(timeout=PATIENCE_SECONDS) - asked)
    wait, commit = statistics.median(waits), statistics.median(commits)
    return {"ratio": wait / commit, "ms": wait * 1e3, "commit_ms": commit * 1e3}


def drain(folder: Path, url: str, count: str = str(DRAINED)) -> Figures:
    """Short runs that wait for two workers. Each tells in the end which runs it executed."""
    runs = [f"run-{n}" for n in range(int(count))]
    asyncio.run(_start_all(url, runs))
    with ExitStack() as stack, psycopg.connect(url, autocommit=True) as db:
        drainers = [stack.enter_context(_drainer(folder, url)) for _ in range(DRAINERS)]
        started = perf_counter()
        for drainer in drainers:
            print("go", file=drainer.stdin, flush=True)
        ended = "SELECT count(*) FROM surefoot.runs WHERE status = 'done'"
        _wait(lambda: db.execute(ended).fetchall() == [(len(runs),)], look_seconds=0.02)
        seconds = perf_counter() - started
        told = [json.loads(drainer.communicate()[0]) for drainer in drainers]
    times = Counter(run for executed_there in told for run in executed_there)
    if set(times) != set(runs):
        raise AssertionError(f"of {len(runs)} runs {len(times)} were executed")
    return {
        "rate": len(runs) / seconds,
        "twice": sum(times.values()) - len(runs),
        "share": min(map(len, told)) / len(runs),
    }


async def _start_all(url: str, runs: list[str]) -> None:
    bound = short.using(store=url)
    await asyncio.gather(*(asyncio.to_thread(bound.start, run) for run in runs))


@contextmanager
def _drainer(folder: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "bench.fleet", "serve", str(folder), url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as drainer:
        try:
            next(iter(drainer.stdout or ()))  # it is ready
            yield drainer
        finally:
            drainer.kill()


def serve(folder: Path, url: str) -> None:
    """A worker from one line of the input to its end; then, which runs it has executed."""
    worker = sf.Worker(store=url, workflows=[short], concurrency=DRAINER_CONCURRENCY)
    print("ready", flush=True)
    sys.stdin.readline()
    with worker:
        sys.stdin.read()
    print(json.dumps(executed), flush=True)


def idle(folder: Path, url: str, count: str = str(SLEEPERS), seconds: str = str(IDLE_SECONDS)) -> Figures:
    """What a worker costs that has nothing to do but to know of many runs that sleep or wait."""
    figures: Figures = {}
    with ExitStack() as stack, psycopg.connect(url, autocommit=True) as db:
        workers = {}
        for name, store in (("postgres", url), ("sqlite", store_in(folder))):
            lay_to_sleep(store, int(count))
            workers[name] = stack.enter_context(_worker_command(store))
            short.using(store=store).start("awake").result(timeout=PATIENCE_SECONDS)
        pids = {name: [worker.pid] for name, worker in workers.items()} | {"server": _backends(db)}
        before, began = {name: _cpu_seconds(found) for name, found in pids.items()}, perf_counter()
        time.sleep(float(seconds))
        passed = perf_counter() - began
        for name, found in pids.items():
            figures[f"{name}_cpu"] = 100 * (_cpu_seconds(found) - before[name]) / passed
        for name, worker in workers.items():
            figures[f"{name}_mb"] = peak_mb(worker.pid)
    return figures


def again(folder: Path, url: str, times: str = str(KILLED)) -> Figures:
    """Killed behind a step and started again on the same host: to the first new step, on PostgreSQL and SQLite in turn."""
    seconds: dict[str, list[float]] = {url: [], store_in(folder): []}
    for n in range(int(times)):
        for store, found in seconds.items():
            command = [sys.executable, "-m", "bench.fleet", "resume", str(folder), store, f"run-{n}"]
            died = subprocess.run(command, env=os.environ | {"BENCH_DIES": "1"}, check=False, stderr=subprocess.PIPE)
            if died.returncode != -signal.SIGKILL:
                raise AssertionError(died.stderr.decode())
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            found.append(float(told.stdout))
    postgres, sqlite = (statistics.median(found) for found in seconds.values())
    return {"ratio": postgres / sqlite, "ms": postgres * 1e3, "sqlite_ms": sqlite * 1e3}


def resume(folder: Path, url: str, run: str) -> None:
    """The seconds from before the run is taken up, the store not yet open, to its newest step."""
    started = time.monotonic()
    print(killed_once.using(store=url).run(run) - started, flush=True)


def listing(folder: Path, url: str, count: str = str(LISTED), times: str = str(LISTINGS)) -> Figures:
    """`surefoot runs` with many runs in the store, with two, and a Python that does nothing, in turn."""
    surefoot = str(Path(sys.executable).with_name("surefoot"))
    commands = {"bare": [sys.executable, "-c", "pass"]}
    for name, store in (("postgres", url), ("sqlite", store_in(folder))):
        lay_to_sleep(store, int(count))
        commands[name] = [surefoot, "runs", "--store", store]
    few = store_in(folder / "few")
    lay_to_sleep(few, 0)
    commands["few"] = [surefoot, "runs", "--store", few]
    wall: dict[str, list[float]] = {name: [] for name in commands}
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(int(times) + 1):  # The first of each finds nothing in the system's cache.
        for name, command in commands.items():
            before, started = os.times(), perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            after = os.times()
            wall[name].append(perf_counter() - started)
            spent = after.children_user + after.children_system - before.children_user - before.children_system
            cpu[name].append(spent)
    ms, cpu_ms = ({name: statistics.median(one[1:]) * 1e3 for name, one in found.items()} for found in (wall, cpu))
    figures: Figures = {"few_ms": ms["few"] - ms["bare"]}
    for name in ("postgres", "sqlite"):
        figures |= {f"{name}_ms": ms[name] - ms["bare"], f"{name}_cpu_ms": cpu_ms[name] - cpu_ms["bare"]}
    return figures


def lay_to_sleep(url: str, count: int, *, models: int = 2) -> None:
    """A worker does it for two runs. The others are those two again, sealed under names of their own: that is quicker.
    `models=1`: only the one that sleeps; the other waits for somebody.
    """
    worker = sf.Worker(store=url, workflows=[asleep])
    for run, sleeps in (("sleeping", True), ("waiting", False)):
        asleep.using(store=url).start(run, sleeps)
    with worker:
        _wait(lambda: sum(worker.ended.values()) == 2)
    store = worker.runtime.store
    laid = [(store.read(one.run).records, one.row) for one in store.runs(RunQuery())]
    for first in range(0, count, COPIED_AT_ONCE):
        numbers = range(first, min(first + COPIED_AT_ONCE, count))
        if any(store.append([_copy(store.id, f"{n:06}", *laid[-models:][n % models]) for n in numbers])):
            raise AssertionError("there is such a run already")


def _copy(store: bytes, run: str, records: Sequence[Record], row: IndexRow | None) -> Extend:
    sealer, sealed, seal = Sealer(store, run), [], GENESIS
    for one in records:
        sealed.append(sealer.seal(seq=one.seq, epoch=one.epoch, at=one.at, kind=one.kind, body=one.body, previous=seal))
        seal = sealed[-1].seal
    if row is None:
        raise AssertionError("a run that a worker has just driven is in the list")
    return Extend(run, None, sealed, replace(row, run=run))


@contextmanager
def _worker_command(url: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "surefoot", "worker", "bench.fleet", "--store", url]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as worker:
        try:
            yield worker
        finally:
            worker.send_signal(signal.SIGTERM)


def _cpu_seconds(pids: list[int]) -> float:
    """Of these processes so far, in the system and outside it. One that has ended counts no more."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


MEASUREMENTS: dict[str, Callable[..., Figures]] = {
    "w1": w1, "w2": w2, "latency": latency, "drain": drain, "idle": idle, "again": again, "listing": listing,
    "copied": copied,
}  # fmt: skip


PROCESSES: dict[str, Callable[..., None]] = {"serve": serve, "resume": resume}
"""Started by measurements."""


def main() -> None:
    name, folder, *arguments = sys.argv[1:]
    os.environ["SUREFOOT_ANCHORS"] = folder  # for the workers that are started here, too
    if name in PROCESSES:
        PROCESSES[name](Path(folder), *arguments)
    else:
        print(json.dumps(MEASUREMENTS[name](Path(folder), *arguments)), flush=True)


if __name__ == "__main__":
    main()
