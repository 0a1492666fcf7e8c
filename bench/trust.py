"""What trust costs: seals, chain and anchor; verifying; opening; and state that grows.

`python -m bench.trust NAME FOLDER …` does one measurement in a process of its own and prints figures as JSON.
What is compared alternates within one process, in slices, so that a slow moment of the disk hits both sides.
"""

from __future__ import annotations

import base64
import json
import random
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import surefoot as sf
from bench.work import Figures, steps, store_in
from surefoot.core.seal import GENESIS, Sealer
from surefoot.store.anchor import Anchor, Mark
from surefoot.store.open import close_all, open_store

SLICES, STEPS_PER_SLICE = 20, 50
OPENS = 30
FEW_RUNS = 100
LARGE_VALUES, LARGE_VALUE_BYTES = 100, 1_000_000
MESSAGE_BYTES = 2_048
LAST_SAVES = 20
"""CPU per save is that of the last ones, when the state is about 400 KB."""

# --- seals, chain and anchor -------------------------------------------------------------------------


def seals(folder: Path) -> Figures:
    """W1 as it is and with seals, chain and anchor switched off, in turn. Switched off here and nowhere else."""
    sealed, bare = (steps.using(store=store_in(folder / name)) for name in ("sealed", "bare"))
    seconds, cpu = [0.0, 0.0], [0.0, 0.0]
    sealed.run("warm-up", 20)
    with _nothing_sealed():
        bare.run("warm-up", 20)
    for number in range(SLICES):
        for side in (0, 1) if number % 2 else (1, 0):
            if side:
                with _nothing_sealed():
                    took = _timed(bare, number)
            else:
                took = _timed(sealed, number)
            seconds[side] += took[0]
            cpu[side] += took[1]
    count = SLICES * STEPS_PER_SLICE
    return {
        "ratio": seconds[0] / seconds[1],
        "cpu_ratio": cpu[0] / cpu[1],
        "cpu_us": (cpu[0] - cpu[1]) / count * 1e6,
    }


def _timed(bound: Any, number: int) -> tuple[float, float]:
    started, cpu = perf_counter(), process_time()
    bound.run(f"slice-{number}", STEPS_PER_SLICE)
    return perf_counter() - started, process_time() - cpu


@contextmanager
def _nothing_sealed() -> Iterator[None]:
    digest, advance = Sealer._digest, Anchor.advance
    Sealer._digest = _no_digest  # type: ignore[method-assign, assignment]
    Anchor.advance = _no_advance  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Sealer._digest = digest  # type: ignore[method-assign]
        Anchor.advance = advance  # type: ignore[method-assign]


def _no_digest(_sealer: Sealer, *_fields: object) -> bytes:
    return GENESIS


def _no_advance(anchor: Anchor, mark: Mark) -> None:
    anchor.newest = mark  # in memory only: no lock, no read, no write


# --- verifying and opening ---------------------------------------------------------------------------


@sf.step
def large(n: int) -> str:
    """Half of them text, half of them base64 of random bytes, which nothing can compress much."""
    rng = random.Random(n)
    return (text if n % 2 else base64_text)(LARGE_VALUE_BYTES, rng)


@sf.workflow
def large_values(count: int) -> None:
    for n in range(count):
        large(n)


def record_large(folder: Path, count: str = str(LARGE_VALUES)) -> Figures:
    large_values.using(store=store_in(folder)).run("large", int(count))
    return {"bytes": _size(folder)}


def record_few(folder: Path) -> Figures:
    bound = steps.using(store=store_in(folder))
    for n in range(FEW_RUNS):
        bound.run(f"run-{n}", 1)
    return {"bytes": _size(folder)}


def verify(folder: Path) -> Figures:
    """Everything `surefoot verify` looks at. The files were written before, so the system has them in its cache."""
    from surefoot.engine.upkeep.verification import verify_store

    store = open_store(store_in(folder), create=False)
    on_disk = _size(folder)
    started = perf_counter()
    found = verify_store(store)
    took = perf_counter() - started
    if found.flaws or not found.entries:
        raise AssertionError(found)
    return {"rate": on_disk / took / 1e6, "content": found.bytes / took / 1e6, "entries": found.entries / took}


def opening(folder: Path, other: str) -> Figures:
    """Median time to open a store for writing, of one and of the other, in turn."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(OPENS + 1):
        for times, place in zip(seconds, (folder, Path(other)), strict=True):
            url = store_in(place)
            started = perf_counter()
            open_store(url, create=True)
            times.append(perf_counter() - started)
            close_all()
    first, second = (statistics.median(times[1:]) for times in seconds)
    return {"ratio": second / first, "ms": second * 1e3}


# --- W4: state that grows ----------------------------------------------------------------------------

_words: list[str] = []


def text(size: int, rng: random.Random) -> str:
    """Words of Python's own manual, as often as they are used there, in random order."""
    if not _words:
        from pydoc_data.topics import topics

        _words.extend(word for page in topics.values() for word in page.split())
    found = " ".join(rng.choices(_words, k=size // 4))
    return found.encode("ascii", "ignore")[:size].decode()


def base64_text(size: int, rng: random.Random) -> str:
    return base64.b64encode(rng.randbytes(size * 3 // 4)).decode()


CONTENTS: dict[str, Callable[[int, random.Random], str]] = {"text": text, "base64": base64_text}

State = list[dict[str, str]]
_grown: State = []
_new: Callable[[], dict[str, str]] = dict
_cpu: list[float] = []


@sf.step
def grow(n: int) -> State:
    _grown.append(_new())
    return _grown


@sf.step
def reply(history: State) -> dict[str, str]:
    return _new()


@sf.workflow
def as_results(count: int) -> None:
    for n in range(count):
        with _counted():
            grow(n)


@sf.workflow
def as_argument(count: int) -> None:
    history: State = []
    for _ in range(count):
        with _counted():
            history.append(reply(history))


def as_checkpoint(count: int, store: str) -> None:
    checkpoint = sf.Checkpoint("w4", store=store)
    state: dict[str, Any] = {"step": 0, "messages": []}
    for n in range(count):
        state["messages"].append(_new())
        state["step"] = n
        with _counted():
            checkpoint.save(state)


def w4(folder: Path, variant: str, content: str, count: str, seed: str) -> Figures:
    """Bytes on disk after a clean end, the unique content, and the CPU of one save when the state is large."""
    global _new  # noqa: PLW0603 - what the steps of this process return
    rng, make = random.Random(int(seed)), CONTENTS[content]
    unique = 0

    def new() -> dict[str, str]:
        nonlocal unique
        message = make(MESSAGE_BYTES, rng)
        unique += len(message)
        return {"role": "assistant", "content": message}

    _new = new
    url = store_in(folder)
    if variant == "checkpoint":
        as_checkpoint(int(count), url)
    else:
        {"results": as_results, "argument": as_argument}[variant].using(store=url).run("w4", int(count))
    close_all()
    return {"bytes": _size(folder), "unique": unique, "cpu_ms": statistics.median(_cpu[-LAST_SAVES:]) * 1e3}


def empty(folder: Path) -> Figures:
    """A store in which hardly anything was recorded: what W4's halves have in common."""
    steps.using(store=store_in(folder)).run("empty", 0)
    close_all()
    return {"bytes": _size(folder)}


@contextmanager
def _counted() -> Iterator[None]:
    started = process_time()
    yield
    _cpu.append(process_time() - started)


def _size(folder: Path) -> int:
    """Everything that is there: the database, its log, the anchor."""
    files = [folder / f"runs.db{end}" for end in ("", "-wal", "-anchor")]
    return sum(path.stat().st_size for path in files if path.exists())


MEASUREMENTS: dict[str, Callable[..., Figures]] = {
    "seals": seals,
    "record_large": record_large,
    "record_few": record_few,
    "verify": verify,
    "opening": opening,
    "w4": w4,
    "empty": empty,
}


def main() -> None:
    name, folder, *more = sys.argv[1:]
    figures = MEASUREMENTS[name](Path(folder), *more)
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
