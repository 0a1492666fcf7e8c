"""Run the agent again on a damaged store, as anybody would, and look at the world: what was executed, and how often.

A person answers every question truthfully, by the ledger. Then the rules are: an effect that asks is executed once
and never again; one that may be retried has the same key each time; a run ends with the right result or a named
error; and whoever does more work again than was cut off has said so first.

Each case has a process of its own, forked from one that has no threads and no store open.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.store.open import close_all
from surefoot.testing.children import in_child
from tests.damage import agent, stores
from tests.damage.reading import TELLS_OF_DAMAGE
from tests.damage.stores import Fault, Original, read_original

PATIENCE_SECONDS = 30
MOST_QUESTIONS = 40


def sweep(original: Original, folder: Path, *, counts: dict[str, int], seed: str) -> Counter[str]:
    """Outcomes by name. In a process of its own, with `counts` faults of each sort."""
    originals = folder / "original"
    originals.mkdir()
    original.write(originals)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.damage.resuming", str(originals), original.name, json.dumps(counts), seed],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    said = [json.loads(line) for line in ended.stdout.splitlines()]
    wrong = [one for one in said if one["wrong"]]
    assert not wrong, json.dumps(wrong, indent=1)
    return Counter(one["outcome"] for one in said)


def line(outcomes: Counter[str]) -> str:
    """For people: how many cases, and how they ended."""
    loud = sum(number for outcome, number in outcomes.items() if outcome.startswith("fell back"))
    refused = sum(number for outcome, number in outcomes.items() if outcome != "done" and "fell back" not in outcome)
    return (
        f"{outcomes.total()} cases: {outcomes['done']} as if nothing had been, {loud} fell back loudly, {refused} stopped "
        "with a named error; 0 effects repeated blindly, 0 fresh starts, 0 wrong results"
    )


def faults(original: Original, folder: Path, counts: dict[str, int], seed: str) -> Iterator[Fault]:
    makers: dict[str, Callable[[int], Iterable[Fault]]] = {
        "flips": lambda count: stores.flips(original, count, seed),
        "truncations": lambda count: stores.truncations(original, count, seed),
        "zeroed": lambda count: _spread(list(stores.zeroed(original)), count),
        "misplaced": lambda count: stores.misplaced(original, count, seed),
        "replaced": lambda _: stores.replaced(original),
        "rows": lambda count: stores.rows(original, folder, count, seed),
    }
    for name, count in counts.items():
        yield from makers[name](count)


def _spread(found: list[Fault], count: int) -> Iterator[Fault]:
    return islice(found, 0, None, max(len(found) // count, 1))


# --- in the process of the sweep --------------------------------------------------------------------------------


def main(folder: Path, name: str, counts: dict[str, int], seed: str) -> None:
    original = read_original(folder, name)
    with stores.scratch(folder) as scratch:
        for fault in faults(original, scratch / "rows", counts, seed):
            said = case_alone(original, fault, scratch / "case")
            sys.stdout.write(json.dumps(said) + "\n")


def case_alone(original: Original, fault: Fault, folder: Path) -> dict[str, Any]:
    """The case in a process of its own: whatever it does, the next one meets nothing of it."""
    ended = in_child(lambda tell: tell(json.dumps(case(original, fault, folder)).encode()), seconds=PATIENCE_SECONDS)
    if ended.code == 0:
        answer = json.loads(ended.report)
    else:
        answer = {"outcome": "wrong", "wrong": [ended.trouble or f"the process ended so: {ended}"]}
    return {"fault": str(fault), **answer}


def case(original: Original, fault: Fault, folder: Path) -> dict[str, Any]:
    """What becomes of the three runs, and what is wrong with that."""
    path = fault.place(folder)
    ledger = folder / "ledger"
    ledger.write_text(original.ledger)
    os.environ["LEDGER"] = str(ledger)
    sf.configure(store=f"sqlite:///{path}")
    said = listen()
    ended = {run: carry_on(run, ledger, said) for run in agent.RUNS}
    done = ledger.read_text()
    close_all()
    again = {run: carry_on(run, ledger, said) for run, end in ended.items() if end == "done"}
    wrong = [
        *(f"{run}: {end}" for run, end in ended.items() if end.startswith("wrong")),
        *(f"{run}: was done, and then {end}" for run, end in again.items() if end != "done"),
        *(["runs that were done did something again"] if done != ledger.read_text() else []),
        *wrong_in_the_world(original.ledger.splitlines(), ledger.read_text().splitlines(), ended, said),
    ]
    return {"outcome": summary(ended, said), "ended": ended, "wrong": wrong}


def listen() -> list[str]:
    """What is said on the logger from now on."""
    said: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    log = logging.getLogger("surefoot")
    log.addHandler(Ear(logging.WARNING))
    log.propagate = False
    return said


def carry_on(run: str, ledger: Path, said: list[str]) -> str:
    """Run it again until it is done, or says what stands in the way."""
    for _ in range(MOST_QUESTIONS):
        try:
            try:
                result = agent.agent.run(run, run)
            except sf.InDoubt as stop:
                for one in stop.stops:
                    answer(run, one.address, ledger)
                continue
            except sf.WaitingForAnswer:
                if not fell_back(run, said):
                    return "wrong: it waits for an event that it had: a silent fresh start"
                agent.tell(run)  # the event was lost, and that was said: it is sent again
                continue
        except sf.NotFound:
            return "wrong: it is taken for one that never was"
        except TELLS_OF_DAMAGE as error:
            return type(error).__name__
        except SurefootError as error:
            return f"wrong: {error!r}, which does not tell of damage"
        return "done" if result == agent.result(run) else f"wrong: it ended with {str(result)[:200]}"
    return "wrong: the questions never end"


def fell_back(run: str, said: list[str]) -> bool:
    return any("fell back" in line and f"run {run}:" in line for line in said)


def answer(run: str, address: str, ledger: Path) -> None:
    """A person looks at the world and tells the truth."""
    name, _, number = address.partition("#")
    start = f"{name} {run} {int(number) - 1} "
    line = next((line for line in ledger.read_text().splitlines() if line.startswith(start)), None)
    told = {"not_happened": True} if line is None else {"happened": agent.value(line)}
    sf.get_run(run).settle(address, by="person", **told)


def wrong_in_the_world(before: list[str], after: list[str], ended: dict[str, str], said: list[str]) -> Iterator[str]:
    if any("created store" in line for line in said):
        yield "a new store was made in the place of this one"
    executed = Counter(after)
    calls: dict[str, set[str]] = {}
    for line in executed:
        call, _, key = line.rpartition(" ") if not line.startswith("step") else (line, "", "")
        calls.setdefault(call, set()).add(key)
        if line.startswith("pay") and executed[line] > 1:
            yield f"{line} was executed {executed[line]} times"
    yield from (f"{call} was executed under {len(keys)} keys" for call, keys in calls.items() if len(keys) > 1)
    yield from _silent_work(Counter(before), executed, ended, said)
    for run, end in ended.items():
        missing = [n for n in range(agent.ROUNDS) if f"pay {run} {n}" not in calls]
        if end == "done" and missing:
            yield f"{run} is done without paying {missing}"


def _silent_work(before: Counter[str], executed: Counter[str], ended: dict[str, str], said: list[str]) -> Iterator[str]:
    """A run that does more again than was cut off must have said so."""
    for run in ended:
        if fell_back(run, said):
            continue
        again = [line for line in before if f" {run} " in f"{line} " and executed[line] > before[line]]
        cut_off = [line for line in again if line == list(before)[-1]]
        if len(again) > len(cut_off):
            yield f"{run} did {again} again and said nothing"


def summary(ended: dict[str, str], said: list[str]) -> str:
    loud = "fell back, " if any("fell back" in line for line in said) else ""
    return loud + " ".join(sorted(set(ended.values())))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), sys.argv[4])
