"""Which scenarios there are at each level, and who lives them.

Scenarios are enumerated from the boundaries that the undisturbed run was counted to have. Who lives only a part of them
draws it; who draws with seed after seed comes to have had all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from tests.crash import decay, power, simulation
from tests.crash.faults import modes
from tests.crash.flows import FLOWS
from tests.crash.lab import Lab
from tests.crash.scenario import Outcome, Scenario

OPENING = 40
"""So many boundaries a recovery may have beyond those that are left of the life it takes up."""
READS = 80
"""So many reads a process has when it takes up a run, or somewhat fewer."""
MOST_SEEDS = 1_000
"""In one package; the next one goes on behind them."""
MOST_DECAYED = 800


def run_all(lab: Lab, scenarios: Sequence[Scenario]) -> Iterator[Outcome]:
    """One by one, in order; simulations that follow each other share a process."""
    for (level, _, damaged), group in groupby(scenarios, lambda one: (one.level, one.broken, one.flow in FLOWS)):
        match level:
            case "L1":
                yield from simulation.run_all(list(group))
            case "L5":
                yield from (power.run(lab, scenario) for scenario in group)
            case "L6" if not damaged:
                yield from decay.run_all(lab, list(group))
            case _:
                yield from (lab.run(scenario) for scenario in group)


def kills(lab: Lab, flow: str) -> list[Scenario]:
    """L3: a real SIGKILL at every boundary, in every way."""
    return _each(lab, flow, "L3")


def errors(lab: Lab, flow: str) -> list[Scenario]:
    """L4: an error at every boundary, once and for ever."""
    return _each(lab, flow, "L4")


def unreadable(lab: Lab, flow: str) -> list[Scenario]:
    """L4: a process that takes up what another one left, and cannot read it. One that is not reached is not counted."""
    return [
        Scenario(flow, "L4", f"{first}:kill/r{second}:{mode}")
        for first in range(1, len(lab.golden(flow).log) + 1)
        for second in range(1, READS + 1)
        for mode in ("eio", "eio+")
    ]


def _each(lab: Lab, flow: str, level: str) -> list[Scenario]:
    log = lab.golden(flow).log
    return [
        Scenario(flow, level, f"{number}:{mode}")
        for number, (kind, name) in enumerate(log, 1)
        for mode in modes(kind, level, name)
    ]


def nested(lab: Lab, flow: str) -> list[Scenario]:
    """L9: a second SIGKILL while recovering from the first, at any boundary of the recovery.

    The recovery of a run that was killed late is short: a boundary it does not reach is no scenario, and is not counted.
    """
    length = len(lab.golden(flow).log)
    return [
        Scenario(flow, "L9", f"{first}:kill/{second}:kill")
        for first in range(1, length + 1)
        for second in range(1, length - first + OPENING)
    ]


def cuts(lab: Lab, flow: str) -> list[Scenario]:
    """L5: what a power cut may leave at any moment."""
    return power.scenarios(lab, flow)


def schedules(lab: Lab, flow: str) -> list[Scenario]:
    """L1: one schedule for each seed. There is no end of them: `some` goes on where these end."""
    return simulation.scenarios(flow, range(MOST_SEEDS))


def decayed(lab: Lab, flow: str) -> list[Scenario]:
    """L6: what is read from a damaged store."""
    return decay.scenarios(flow, "read", MOST_DECAYED, 0)


def decayed_resumed(lab: Lab, flow: str) -> list[Scenario]:
    """L6: what becomes of the runs of a damaged store."""
    return decay.scenarios(flow, "resume", MOST_DECAYED, 0)


def given(lab: Lab, flow: str) -> list[Scenario]:
    """L6: flows that begin with a store that is damaged already."""
    return [Scenario(flow, "L6")]


PLANS: dict[str, Callable[[Lab, str], list[Scenario]]] = {
    "L1": schedules, "L3": kills, "L4": errors, "L4r": unreadable, "L5": cuts, "L6": decayed, "L6r": decayed_resumed, "L6g": given,
    "L9": nested,
}  # fmt: skip


def some(scenarios: Sequence[Scenario], count: int, seed: int) -> list[Scenario]:
    """So many of them, in an order that has nothing to do with theirs. Seeds 0, 1, 2 … never meet before all were had."""
    if scenarios and scenarios[0].level == "L1":
        return [replace(one, seed=one.seed + seed * MOST_SEEDS) for one in scenarios[:count]]
    if scenarios and scenarios[0].flow in decay.STORES:
        return random.Random(seed).sample([replace(one, seed=seed) for one in scenarios], min(count, len(scenarios)))
    mixed = random.Random(len(scenarios)).sample(scenarios, len(scenarios))
    first = seed * count % max(len(mixed), 1)
    return (mixed[first:] + mixed[:first])[:count]
