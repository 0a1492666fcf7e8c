"""The work that is measured. `python -m bench.work NAME FOLDER` does it once and prints figures as JSON.

Each measurement has a fresh process and a fresh folder, so that none inherits another's warm caches or
open files. What is imported, opened and warmed up before the clock starts is the same on both sides of a
ratio. Steps return a dict of about 200 bytes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import statistics
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import apsw
import msgspec

import surefoot as sf
from surefoot.engine.drive import gate

STEPS = 1_000
MANY_STEPS = 20_000
RUNS, STEPS_PER_RUN = 200, 10
THREADS, STEPS_PER_THREAD = 16, 60
CROWD = 10_000
LONGEST_WAIT_SECONDS = 0.005
LONE_STEPS = 400
ACTS, TURNS = 50, 15
RUN = "long"

Figures = dict[str, float]


def answer(n: int) -> dict[str, Any]:
    """About 200 bytes as JSON."""
    return {"n": n, "path": f"src/package/module_{n:05}.py", "verdict": "changed", "text": "x" * 110, "tokens": 812}


# --- workflows -----------------------------------------------------------------------------------


@sf.step
def blocking_step(n: int) -> dict[str, Any]:
    return answer(n)


@sf.effect
def blocking_effect(n: int) -> dict[str, Any]:
    return answer(n)


@sf.step
async def async_step(n: int) -> dict[str, Any]:
    return answer(n)


@sf.effect
async def async_effect(n: int) -> dict[str, Any]:
    return answer(n)


@sf.step
async def waiting_step(n: int) -> dict[str, Any]:
    await asyncio.sleep(random.uniform(0, LONGEST_WAIT_SECONDS))
    return answer(n)


@sf.workflow
def steps(count: int) -> int:
    for n in range(count):
        blocking_step(n)
    return count


@sf.workflow
def effects(count: int) -> int:
    for n in range(count):
        blocking_effect(n)
    return count


@sf.workflow
async def async_steps(count: int) -> int:
    for n in range(count):
        await async_step(n)
    return count


@sf.workflow
async def waiting_steps(count: int) -> int:
    for n in range(count):
        await waiting_step(n)
    return count


laps: list[float] = []


@sf.workflow
def timed_steps(count: int) -> int:
    for n in range(count):
        started = perf_counter()
        blocking_step(n)
        laps.append(perf_counter() - started)
    return count


@sf.workflow
async def async_timed_steps(count: int) -> int:
    for n in range(count):
        started = perf_counter()
        await async_step(n)
        laps.append(perf_counter() - started)
    return count


clock_started = 0.0


@sf.step
def first_new_call() -> None:
    """Reached: say when, and die as a crashed process would."""
    print(json.dumps({"seconds": perf_counter() - clock_started}), flush=True)
    os._exit(0)


@sf.workflow
def long_run(count: int) -> None:
    for n in range(count):
        blocking_step(n)
    first_new_call()


class Cut(BaseException):
    """The process would be gone; here only the run is."""


reached: list[float] = []


@sf.step
def next_call() -> None:
    reached.append(perf_counter())
    raise Cut


@sf.workflow
def acting_run(count: int) -> None:
    for n in range(count):
        blocking_step(n)
        blocking_effect(n)
    next_call()


@sf.workflow
async def async_acting_run(count: int) -> None:
    for n in range(count):
        await async_step(n)
        await async_effect(n)
    next_call()


# --- measurements --------------------------------------------------------------------------------


def store_in(folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    return f"sqlite:///{folder.resolve() / 'runs.db'}"


def w1(folder: Path) -> Figures:
    return _sequential(steps, folder)


def w1e(folder: Path) -> Figures:
    return _sequential(effects, folder)


def _sequential(workflow: Any, folder: Path) -> Figures:
    bound = workflow.using(store=store_in(folder))
    bound.run("warm-up", 20)
    started = perf_counter()
    bound.run(RUN, STEPS)
    return {"rate": STEPS / (perf_counter() - started)}


def w2(folder: Path) -> Figures:
    return asyncio.run(_concurrent(async_steps, folder))


def w2b_waits(folder: Path) -> Figures:
    return asyncio.run(_concurrent(waiting_steps, folder))


async def _concurrent(workflow: Any, folder: Path) -> Figures:
    bound = workflow.using(store=store_in(folder))
    await asyncio.gather(*(bound.run(f"warm-up-{n}", 2) for n in range(5)))
    started, cpu = perf_counter(), process_time()
    await asyncio.gather(*(bound.run(f"run-{n}", STEPS_PER_RUN) for n in range(RUNS)))
    count = RUNS * STEPS_PER_RUN
    return {"rate": count / (perf_counter() - started), "cpu": (process_time() - cpu) / count}


def crowd(folder: Path, count: str = str(CROWD)) -> Figures:
    """Runs of one step, all of them begun at once in one loop."""
    return asyncio.run(_crowd(folder, int(count)))


async def _crowd(folder: Path, count: int) -> Figures:
    bound = async_steps.using(store=store_in(folder))
    await asyncio.gather(*(bound.run(f"warm-up-{n}", 1) for n in range(5)))
    before = peak_mb(os.getpid())
    started, cpu = perf_counter(), process_time()
    results = await asyncio.gather(*(bound.run(f"run-{n}", 1) for n in range(count)))
    seconds, cpu = perf_counter() - started, process_time() - cpu
    if results != [1] * count:
        raise AssertionError(f"of {count} runs {results.count(1)} ended as they should")
    return {"cpu_us": cpu / count * 1e6, "mb": peak_mb(os.getpid()), "before_mb": before, "rate": count / seconds}


def peak_mb(pid: int) -> float:
    """The most memory that a process has had since its start."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def w2b_threads(folder: Path) -> Figures:
    bound = steps.using(store=store_in(folder))
    bound.run("warm-up", 20)
    threads = [threading.Thread(target=bound.run, args=(f"run-{n}", STEPS_PER_THREAD)) for n in range(THREADS)]
    started = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"rate": THREADS * STEPS_PER_THREAD / (perf_counter() - started)}


def record(folder: Path) -> Figures:
    """Leave a run that died after 1,000 recorded steps."""
    return _reach_new_call(folder, STEPS)


def record_many(folder: Path) -> Figures:
    return _reach_new_call(folder, MANY_STEPS)


def _reach_new_call(folder: Path, count: int) -> Figures:
    """Start or resume the long run. Ends the process inside `first_new_call`, which prints the figure."""
    global clock_started  # noqa: PLW0603 - read by the step that ends the process
    steps.using(store=store_in(folder / "warm-up")).run("warm-up", 20)
    clock_started = perf_counter()
    long_run.using(store=store_in(folder)).run(RUN, count)
    raise AssertionError("the run went past its last call")


def rehearsed(folder: Path) -> Figures:
    """A resume of a run with 50 steps and 50 effects, to its first new call: with the rehearsal, and without, in turn."""
    return _with_and_without(lambda: acting_run.using(store=store_in(folder)).run(RUN, ACTS))


def rehearsed_async(folder: Path) -> Figures:
    return _with_and_without(
        lambda: asyncio.run(async_acting_run.using(store=store_in(folder)).run(RUN, ACTS)),
    )


def _not_needed(_: object) -> bool:
    return False


def _with_and_without(resume: Callable[[], object]) -> Figures:
    """Left out in the bench only, by replacing the function that says whether it is needed."""
    is_needed = gate.is_needed
    took: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(2 * TURNS + 3):
        wanted = turn % 2 == 0
        gate.is_needed = is_needed if wanted else _not_needed  # type: ignore[assignment]
        started = perf_counter()
        with suppress(Cut):
            resume()
        if turn > 2:  # The first records the run, and two are to warm up.
            took[wanted].append(reached[-1] - started)
    gate.is_needed = is_needed
    with_it, without = (statistics.median(took[wanted]) for wanted in (True, False))
    return {"ratio": with_it / without, "ms": with_it * 1e3, "without_ms": without * 1e3}


def read_rows(folder: Path) -> Figures:
    """What W3 is compared with: open, read, hash and JSON-decode the rows of the same run, nothing else."""
    _read_hash_decode(folder / "warm-up", "warm-up")
    started = perf_counter()
    rows = _read_hash_decode(folder, RUN)
    seconds = perf_counter() - started
    bodies = [len(body) for kind, body in rows if kind == STEP_DONE]
    return {"seconds": seconds, "rows": len(rows), "body": statistics.mean(bodies)}


STEP_DONE = 21


def _read_hash_decode(folder: Path, run: str) -> list[tuple[int, bytes]]:
    connection = apsw.Connection(str(folder.resolve() / "runs.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    rows: list[Any] = connection.execute("select kind, body from entries where run = ? order by seq", (run,)).fetchall()
    for _, body in rows:
        hashlib.sha256(body).digest()
        msgspec.json.decode(body)
    connection.close()
    return rows


def ref(folder: Path, body_bytes: str) -> Figures:
    """The bare loop: one INSERT of the same bytes and a commit, 1,000 times, fresh file, WAL, FULL."""
    connection = durable_rows(folder / "ref.db")
    body = os.urandom(int(body_bytes))
    started = perf_counter()
    for _ in range(STEPS):
        connection.execute("insert into rows values (?)", (body,))
    return {"rate": STEPS / (perf_counter() - started)}


def durable_rows(path: Path) -> apsw.Connection:
    """A new table `rows`; each INSERT into it is on disk when it returns."""
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=full")
    if connection.pragma("journal_mode") != "wal" or connection.pragma("synchronous") != 2:
        raise AssertionError("the reference loop is not durable here")
    connection.execute("create table rows(body blob)")
    return connection


def lone_step(folder: Path) -> Figures:
    """The median of one blocking step and of one async step, each alone in its process's store."""
    timed_steps.using(store=store_in(folder / "blocking")).run(RUN, LONE_STEPS)
    blocking = statistics.median(laps)
    laps.clear()
    asyncio.run(async_timed_steps.using(store=store_in(folder / "async")).run(RUN, LONE_STEPS))
    return {"blocking": blocking, "async": statistics.median(laps)}


MEASUREMENTS: dict[str, Callable[..., Figures]] = {
    "w1": w1,
    "w1e": w1e,
    "w2": w2,
    "w2b_waits": w2b_waits,
    "w2b_threads": w2b_threads,
    "crowd": crowd,
    "record": record,
    "record_many": record_many,
    "rehearsed": rehearsed,
    "rehearsed_async": rehearsed_async,
    "read_rows": read_rows,
    "lone_step": lone_step,
    "ref": ref,
}


def main() -> None:
    name, folder, *more = sys.argv[1:]
    print(json.dumps(MEASUREMENTS[name](Path(folder), *more)), flush=True)


if __name__ == "__main__":
    main()
