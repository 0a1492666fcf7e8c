"""Corruption of whole stores (L6): the sweeps of tests/damage, as scenarios of the lab.

`flow=interrupted level=L6 at=flips:read:17 seed=3` is the eighteenth of the flips that seed 3 spreads over that store.
`read`: everything that can still be read is the same, or the reader is told. `resume`: the runs go on, and nothing is
done twice, lost, or begun anew in silence.

The store is made by real processes, so its bytes differ from one lab to the next, and with them what a flip hits. So a
store in which something was violated is kept in tests/crash/found, and the line names it: `flow=interrupted@5d0c…` is
lived again on those very bytes.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from surefoot.testing.children import Tell, in_child
from tests.crash.lab import Lab
from tests.crash.scenario import Outcome, Scenario
from tests.damage import reading, resuming, stores
from tests.damage.stores import Fault, Original, read_original

STORES = tuple(stores.LIVES)
FOUND = Path(__file__).parent / "found"
EVERY = 100_000
"""More than there are."""
SORTS = {"flips": 400, "truncations": 20, "zeroed": EVERY, "misplaced": 5_000, "replaced": EVERY, "rows": 12}
"""What the maker of each sort is asked for."""
SIZES = {"flips": 400, "truncations": 38, "zeroed": 80, "misplaced": 80, "replaced": 4, "rows": 120}
"""How many of each sort one seed has, in any store: all of them different."""
UNLUCKY = ("zeroed", "misplaced", "replaced")
"""Of these a store has so many, whatever the seed. Each seed has its share, until none is left."""
SECONDS = 300


def scenarios(store: str, how: str, seed: int) -> list[Scenario]:
    """All that one seed has."""
    return [
        Scenario(store, "L6", f"{sort}:{how}:{index}", seed) for sort, size in SIZES.items() for index in range(size)
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
                said = resuming.case_alone(original, fault, scratch / "case")
                outcome.violations = [f"I-05: {fault}: {wrong}" for wrong in said["wrong"]]
                outcome.goals = ["fell back loudly"] if said["outcome"].startswith("fell back") else []
            if outcome.violations:
                outcome.line = str(replace(scenario, flow=_kept(original)))
            tell(json.dumps(asdict(outcome)).encode() + b"\n")

    scratch.mkdir(exist_ok=True)
    ended = in_child(work, seconds=SECONDS)
    shutil.rmtree(scratch, ignore_errors=True)
    told = [Outcome(**json.loads(line)) for line in ended.report.splitlines()]
    yield from told
    if len(told) < len(batch):
        yield Outcome(str(batch[len(told)]), "L6", [f"I-20: the sweep ended with {ended.trouble or ended}"])


def _fault(original: Original, folder: Path, sort: str, index: int, seed: int) -> Fault | None:
    found = _made.get((original.name, sort, seed))
    if found is None:
        found = _made[original.name, sort, seed] = _faults(original, folder, sort, seed)
    return found[index] if index < len(found) else None


_made: dict[tuple[str, str, int], list[Fault]] = {}


def _faults(original: Original, folder: Path, sort: str, seed: int) -> list[Fault]:
    """Those of one seed; none of them twice."""
    word = "all" if sort in UNLUCKY else str(seed)
    different = {str(fault): fault for fault in resuming.faults(original, folder, {sort: SORTS[sort]}, word)}
    mixed = random.Random(sort).sample(list(different.values()), len(different))
    first = seed * SIZES[sort] if sort in UNLUCKY else 0
    return mixed[first : first + SIZES[sort]]


def _kept(original: Original) -> str:
    """Keep the store for whoever lives the line again: the name under which it is found."""
    digest = sha256(b"".join(original.files[suffix] for suffix in sorted(original.files))).hexdigest()[:12]
    place = FOUND / digest
    if not place.exists():
        place.mkdir(parents=True)
        original.write(place)
    return f"{original.name}@{digest}"


@cache
def _original(folder: Path, name: str) -> Original:
    store, _, digest = name.partition("@")
    if digest:
        return read_original(FOUND / digest, store)
    place = folder / f"original-{name}"
    place.mkdir()
    return stores.build(name, place)
