"""Which scenarios there are at each level, and who lives them.

Where there is an end of them, scenarios are enumerated from the boundaries that the undisturbed run was counted to have.
Who lives only a part of them draws it; who draws with seed after seed comes to have had all of them. Of schedules, random
programs and deeper kills there is no end: each seed has its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice

from tests.crash import async_flows, decay, deploys, power, seen_flows, simulation, worldly
from tests.crash.faults import modes
from tests.crash.flows import FLOWS
from tests.crash.lab import Lab, Recovery
from tests.crash.programs import written
from tests.crash.scenario import Outcome, Scenario

EARLY = 30
"""A boundary that nearly every recovery has."""
OF_EACH_FLOW = 4
"""So many scenarios are drawn of a flow that is made for them."""
OF_EACH = 10
"""So many scenarios are drawn of a recovery whose length was counted for them."""


def run_all(lab: Lab, scenarios: Sequence[Scenario]) -> Iterator[Outcome]:
    """One by one, in order; simulations that follow each other share a process."""
    for (level, _, damaged), group in groupby(scenarios, lambda one: (one.level, one.broken, one.flow in FLOWS)):
        match level:
            case "L1":
                yield from simulation.run_all(list(group))
            case level if level in worldly.LEVELS:
                yield from worldly.run_all(lab, list(group))
            case "L13":
                yield from (deploys.run_real(lab, scenario) for scenario in group)
            case "L13s":
                yield from deploys.run_simulated(list(group))
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


def _each(lab: Lab, flow: str, level: str) -> list[Scenario]:
    log = lab.golden(flow).log
    return [
        Scenario(flow, level, f"{number}:{mode}")
        for number, (kind, name) in enumerate(log, 1)
        for mode in modes(kind, level, name)
    ]


def nested(lab: Lab, flow: str) -> list[Scenario]:
    """L9: a second SIGKILL while recovering from the first, at every boundary of every recovery."""
    return [
        Scenario(flow, "L9", f"{first}:kill/{second}:kill")
        for first in range(1, len(lab.golden(flow).log) + 1)
        for second in range(1, lab.recovery(flow, first).boundaries + 1)
    ]


def cuts(lab: Lab, flow: str) -> list[Scenario]:
    """L5: what a power cut may leave at any moment."""
    return power.scenarios(lab, flow)


def given(lab: Lab, flow: str) -> list[Scenario]:
    """L6: flows that begin with a store that is damaged already."""
    return [Scenario(flow, "L6")]


def schedules(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L1: one schedule for each seed."""
    return simulation.scenarios(flow, range(seed * count, (seed + 1) * count))


def program_kills(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L3: for each seed another program, with branches too."""
    return some(kills(lab, written(seed, branching=True)), count, 0)


def program_errors(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L4: the same."""
    return some(errors(lab, written(seed, branching=True)), count, 0)


def program_cuts(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L5: the same, without branches."""
    return some(cuts(lab, written(seed)), count, 0)


def unreadable(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L4: a process that takes up what another one left, and cannot read it."""
    luck = random.Random(f"{flow} {seed}")
    struck = _recovering(lab, flow, luck, lambda recovery: recovery.reads)
    return [
        Scenario(flow, "L4", f"{one}:kill/r{at}:{luck.choice(('eio', 'eio+'))}") for one, at in islice(struck, count)
    ]


def nested_somewhere(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L9, of flows that have too many pairs of boundaries."""
    struck = _recovering(lab, flow, random.Random(f"{flow} {seed}"), lambda recovery: recovery.boundaries)
    return [Scenario(flow, "L9", f"{one}:kill/{at}:kill") for one, at in islice(struck, count)]


def _recovering(
    lab: Lab, flow: str, luck: random.Random, length: Callable[[Recovery], int]
) -> Iterator[tuple[int, int]]:
    """Where the first process is killed, and a place in the life of the one that recovers, whose length was counted."""
    while True:
        first = luck.randint(1, len(lab.golden(flow).log))
        places = range(1, length(lab.recovery(flow, first)) + 1)
        yield from ((first, at) for at in luck.sample(places, min(OF_EACH, len(places))))


def deeper(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L9: three to five SIGKILLs, each but the first while recovering, and early, so that the next one finds some left."""
    luck, length = random.Random(f"{flow} {seed}"), len(lab.golden(flow).log)

    def struck_at() -> Iterator[int]:
        yield luck.randint(1, length)
        yield from (luck.randint(1, EARLY) for _ in range(luck.randint(2, 4)))

    return [Scenario(flow, "L9", "/".join(f"{at}:kill" for at in struck_at())) for _ in range(count)]


def decayed(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L6: what is read from a damaged store."""
    return random.Random(seed).sample(decay.scenarios(flow, "read", seed), count)


def decayed_resumed(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L6: what becomes of the runs of a damaged store."""
    return random.Random(seed).sample(decay.scenarios(flow, "resume", seed), count)


def seen(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L14: for each seed another flow whose code looks at everything, killed; and often again while it recovers."""
    return _several(lab, seen_flows.drawn, count, seed)


def awaited(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """L14: for each seed another async flow and timing, killed; and often again while it recovers."""
    return _several(lab, async_flows.drawn, count, seed)


def _several(lab: Lab, drawn: Callable[[int], str], count: int, seed: int) -> list[Scenario]:
    flows = -(-count // OF_EACH_FLOW)
    numbers = range(seed * flows, (seed + 1) * flows)
    return [one for number in numbers for one in _killed(lab, drawn(number), OF_EACH_FLOW, number)][:count]


def _killed(lab: Lab, flow: str, count: int, seed: int) -> list[Scenario]:
    """One of three is killed twice."""
    luck = random.Random(f"{flow} {seed}")
    more = (f"/{luck.randint(1, EARLY)}:kill" if n % 3 == 2 else "" for n in range(count))
    return [
        Scenario(flow, "L14", f"{one.at}{at}")
        for one, at in zip(some(kills(lab, flow), count, seed), more, strict=False)
    ]


FINITE: dict[str, Callable[[Lab, str], list[Scenario]]] = {
    "L3": kills, "L4": errors, "L5": cuts, "L6g": given, "L9": nested,
}  # fmt: skip
ENDLESS: dict[str, Callable[[Lab, str, int, int], list[Scenario]]] = {
    "L1": schedules, "L1p": schedules, "L3p": program_kills, "L4p": program_errors, "L4r": unreadable,
    "L13": deploys.killed_somewhere, "L13s": deploys.everywhere,
    "L5p": program_cuts, "L6": decayed, "L6r": decayed_resumed, "L9n": nested_somewhere, "L9d": deeper,
    "L14s": seen, "L14a": awaited, **worldly.PLANS,
}  # fmt: skip


def drawn(lab: Lab, plan: str, flow: str, count: int, seed: int) -> tuple[list[Scenario], int]:
    """So many scenarios of a plan; and how many there are of it, or 0 if there is no end of them."""
    if plan in ENDLESS:
        return ENDLESS[plan](lab, flow, count, seed), 0
    found = FINITE[plan](lab, flow)
    return some(found, count, seed), len(found)


def some(scenarios: Sequence[Scenario], count: int, seed: int) -> list[Scenario]:
    """So many of them, in an order that has nothing to do with theirs. Seeds 0, 1, 2 … never meet before all were had."""
    mixed = random.Random(len(scenarios)).sample(scenarios, len(scenarios))
    first = seed * count % max(len(mixed), 1)
    return mixed[first : first + count]
