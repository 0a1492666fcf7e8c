"""The levels at which the world misbehaves, for the tables of the lab: who lives them, how many, and what they have to catch."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from tests.crash import haunting, latency, meddling, raising
from tests.crash.lab import Lab
from tests.crash.scenario import Outcome, Scenario

LEVELS = {
    "L10": "world latency: requests that land after the kill, after the pause, after a check has looked",
    "L10z": "late landings: a process silent inside an effect, taken over, and its call lands then",
    "L11": "effects that act and then raise: every exception, every policy, each cure that is offered; kills in between",
    "L12": "somebody else writes the same files at any boundary, inside every effect and every approval; kills in between",
}
PLANS: dict[str, Callable[[Lab, str, int, int], list[Scenario]]] = {
    "L10": latency.scenarios,
    "L10z": haunting.scenarios,
    "L11": raising.scenarios,
    "L12": meddling.scenarios,
}
FLOWS: dict[str, tuple[str, ...]] = {
    "L10": latency.SHAPES,
    "L10z": ("check", "retry", "ask", "fail"),
    "L11": raising.SHAPES,
    "L12": meddling.SHAPES,
}
QUICK = {"L10": 14, "L10z": 70, "L11": 20, "L12": 13}
"""So many of each flow are lived by `make test`."""
COUNTED = {"L10": 0.9, "L10z": 0.9, "L11": 0.9, "L12": 0.9}
_LIVED = {"L10": latency.run, "L11": raising.run, "L12": meddling.run}


def run_all(lab: Lab, scenarios: Sequence[Scenario]) -> Iterator[Outcome]:
    """All of one level, and of one engine."""
    if scenarios[0].level == "L10z":
        yield from haunting.run_all(scenarios)
    else:
        yield from (_LIVED[scenario.level](lab, scenario) for scenario in scenarios)


# --- the broken engines, and where to look ------------------------------------------------------------------------------------

Hunt = Callable[[Lab, str], list[Scenario]]
MANY = 60


def _luck(engine: str) -> random.Random:
    return random.Random(engine)


def _by(engine: str, scenario: Scenario) -> Scenario:
    return Scenario(scenario.flow, scenario.level, scenario.at, scenario.seed, engine)


def late(shape: str, **fixed: str) -> Hunt:
    """L10, with these choices made."""

    def hunt(lab: Lab, engine: str) -> list[Scenario]:
        luck = _luck(engine)
        return [_by(engine, latency.drawn(luck, shape, **fixed)) for _ in range(MANY)]

    return hunt


def haunted(policy: str, **fixed: str) -> Hunt:
    """L10z."""

    def hunt(lab: Lab, engine: str) -> list[Scenario]:
        luck = _luck(engine)
        return [_by(engine, haunting.drawn(luck, policy, **fixed)) for _ in range(MANY)]

    return hunt


def raised(shape: str, **fixed: str) -> Hunt:
    """L11."""

    def hunt(lab: Lab, engine: str) -> list[Scenario]:
        luck = _luck(engine)
        return [_by(engine, raising.drawn(luck, shape, **fixed)) for _ in range(MANY)]

    return hunt


def meddled(flow: str) -> Hunt:
    """L12: one write before and one after each boundary, and no kill."""

    def hunt(lab: Lab, engine: str) -> list[Scenario]:
        moments = meddling.moments(lab, flow, _luck(engine))
        return [Scenario(flow, "L12", moment, 0, engine) for moment in moments]

    return hunt


HUNTS: dict[str, Hunt] = {
    "not-happened-believed-at-once": late("alone", policy="check"),
    "in-flight-ignored": late("alone", policy="check", gap="0"),
    "bound-looked-at-after-the-check": late("alone", policy="check", gap="10", slow="40"),
    "half-believed-at-once": late("parts", gap="50"),
    "cancelled-without-patience": late("cancel", policy="check", gap="10"),
    "silent-is-dead": haunted("check", bound="none"),
    "fenced-worker-silent": haunted("check", bound="timeout"),
    "late-landing-not-heard": haunted("retry", comes_back="inside"),
    "entries-of-another-claim-taken-for-ours": haunted("check", comes_back="wait"),
    "exception-is-failed": raised("alone"),
    "key-error-proves-not-done": raised("alone", error="KeyError"),
    "clients-that-retry-are-believed": raised("alone", error="openai.RateLimitError"),
    "broad-not-done-covers-unsure": raised("alone", error="ConnectionResetError", declared="OSError"),
    "empty-not-done-ignored": raised("alone", error="ConnectionRefusedError", declared="nothing"),
    "group-is-as-good-as-its-best": raised("alone", error="group"),
    "saga-forgets-what-failed-in-doubt": raised("saga", policy="fail"),
    "defaults-of-today-used-on-retry": raised("alone", policy="retry"),
    "undo-with-defaults-of-today": raised("saga"),
    "approval-not-looked-at-again": meddled("waiting"),
    "look-not-held-against-expectation": meddled("ready"),
    "foreign-write-taken-for-own": meddled("ready"),
}
