"""Corruption of whole stores (L6): the sweeps of tests/damage, as scenarios of the lab.

`flow=interrupted level=L6 at=flips:read:17 seed=3` is the eighteenth of the flips that seed 3 spreads over that store.
`read`: everything that can still be read is the same, or the reader is told. `resume`: the runs go on, and nothing is
done twice, lost, or begun anew in silence. The store is made by real processes, so its bytes differ from one lab to the
next; what a scenario means does not.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from itertools import groupby
from pathlib import Path

from surefoot.testing.children import Tell, in_child
from tests.crash.lab import Lab
from tests.crash.scenario import Outcome, Scenario
from tests.damage import reading, resuming, stores
from tests.damage.stores import Fault, Original

STORES = tuple(stores.LIVES)
SIZES = {"flips": 400, "truncations": 60, "zeroed": 120, "misplaced": 120, "replaced": 12, "rows": 120}
"""How many of each sort one seed makes, about; those that a store has not are no scenarios."""
SECONDS = 300


def scenarios(store: str, how: str, count: int, seed: int) -> list[Scenario]:
    """So many, of all sorts by their share."""
    total = sum(SIZES.values())
    return [
        Scenario(store, "L6", f"{sort}:{how}:{index}", seed)
        for sort, size in SIZES.items()
        for index in range(max(count * size // total, 1))
    ]


def run_all(lab: Lab, batch: Sequence[Scenario]) -> Iterator[Outcome]:
    for (flow, seed), group in groupby(batch, lambda one: (one.flow, one.seed)):
        yield from _swept(lab, flow, seed, list(group))


def _swept(lab: Lab, flow: str, seed: int, batch: list[Scenario]) -> Iterator[Outcome]:
    original = _original(lab.folder, flow)
    scratch = lab.folder / "decay"

    def work(tell: Tell) -> None:
        expected = reading.truth(original, scratch / "truth")
        for scenario in batch:
            sort, how, index = scenario.at.split(":")
            outcome = Outcome(str(scenario), "L6")
            fault = _fault(original, scratch / "rows", sort, int(index), seed)
            if fault is None:
                outcome.uncounted = "the store has no more of these"
            elif how == "read":
                tally = reading.sweep([fault], expected, scratch / "case")
                outcome.violations = [f"I-18: {fault}: in silence" for _ in tally.silent]
                outcome.violations += [f"I-14: {fault}: taken for nothing there" for _ in tally.fresh]
                outcome.goals = ["damage that was said"] if tally.said else []
            else:
                said = resuming.in_a_fork(
                    lambda fault=fault: resuming.case(original, fault, scratch / "case"), str(fault)
                )
                outcome.violations = [f"I-05: {fault}: {wrong}" for wrong in said["wrong"]]
                outcome.goals = ["fell back loudly"] if said["outcome"].startswith("fell back") else []
            tell(json.dumps(asdict(outcome)).encode() + b"\n")

    scratch.mkdir(exist_ok=True)
    ended = in_child(work, seconds=SECONDS)
    shutil.rmtree(scratch, ignore_errors=True)
    told = [Outcome(**json.loads(line)) for line in ended.report.splitlines()]
    yield from told
    if len(told) < len(batch):
        yield Outcome(str(batch[len(told)]), "L6", [f"I-20: the sweep ended with {ended.trouble or ended}"])


def _fault(original: Original, folder: Path, sort: str, index: int, seed: int) -> Fault | None:
    found = _faults(original.name, sort, seed) or _made(original, folder, sort, seed)
    return found[index % len(found)] if found else None


_kept: dict[tuple[str, str, int], list[Fault]] = {}


def _faults(name: str, sort: str, seed: int) -> list[Fault] | None:
    return _kept.get((name, sort, seed))


def _made(original: Original, folder: Path, sort: str, seed: int) -> list[Fault]:
    size, word = SIZES[sort], str(seed)
    makers: dict[str, Callable[[], Iterable[Fault]]] = {
        "flips": lambda: stores.flips(original, size, word),
        "truncations": lambda: stores.truncations(original, size // 3, word),
        "zeroed": lambda: list(stores.zeroed(original))[seed % 7 :: 7],
        "misplaced": lambda: stores.misplaced(original, size, word),
        "replaced": lambda: stores.replaced(original),
        "rows": lambda: stores.rows(original, folder, size // 10, word),
    }
    _kept[original.name, sort, seed] = found = list(makers[sort]())
    return found


@cache
def _original(folder: Path, name: str) -> Original:
    place = folder / f"original-{name}"
    place.mkdir()
    return stores.build(name, place)
