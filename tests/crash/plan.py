"""How much of each level is lived by `make test`, and in which order `make chaos` goes through all of it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.crash import worldly
from tests.crash.decay import STORES
from tests.crash.flows import FLOWS
from tests.crash.programs import ANY
from tests.crash.simulation import FLOWS_HERE


@dataclass(frozen=True)
class Part:
    plan: str
    flow: str
    count: int


SOUND = tuple(name for name, flow in FLOWS.items() if not flow.damaged)
DAMAGED = tuple(name for name, flow in FLOWS.items() if flow.damaged and not flow.refused)
REFUSED = tuple(name for name, flow in FLOWS.items() if flow.refused)
ALONE = (
    "linear",
    "loop",
    "probe",
    "repair",
    "saga",
    "retry",
    "doubt",
    "vague",
    "deaf",
    "transaction",
    "large",
    "secret",
)
"""Calls and values."""
TOGETHER = tuple(name for name in SOUND if name not in ALONE)
"""People, time, branches, files, and what is done to whole runs."""
FAILING = (
    "linear", "loop", "saga", "fan", "approval", "large", "checkpoint", "checkpoint-files", "fork", "rewind", "prune",
    "linear-async", "event", "tiny",
)  # fmt: skip
"""Flows for which errors of system calls are tried, also in a process that takes them up. Not `files`: it shares its
folder with the store."""
CUT = ("linear", "loop", "saga", "approval", "large", "checkpoint", "fork", "rewind", "prune", "secret", "event")
"""Flows for which the power is cut."""
TINY = "tiny"
"""So small that every pair of kills is tried."""
SMALL = ("secret", "probe", "repair", "vague", "bury", "saga", "approval", "large", "retry")
"""Flows that are killed again while they recover."""

QUICK: dict[str, list[Part]] = {
    "kills_alone": [Part("L3", flow, 15) for flow in ALONE],
    "kills_together": [Part("L3", flow, 13) for flow in TOGETHER],
    "kills_damaged": [Part("L3", flow, 12) for flow in DAMAGED],
    "errors": [
        *(Part("L4", flow, 14) for flow in FAILING),
        *(Part("L4r", flow, 6) for flow in FAILING),
    ],
    "power": [Part("L5", flow, 18) for flow in CUT],
    "nested": [Part("L9", TINY, 20), *(Part("L9n", flow, 6) for flow in SMALL), Part("L9d", TINY, 12)],
    "programs": [Part("L1p", ANY, 200), Part("L3p", ANY, 20), Part("L4p", ANY, 10), Part("L5p", ANY, 10)],
    "edits": [Part("L13s", ANY, 45), Part("L13", ANY, 20)],
    "simulation": [Part("L1", flow, 240) for flow in FLOWS_HERE],
    "seen": [Part("L14s", "zoo", 40), Part("L14a", "tasks", 60)],
    "decay": [
        *(Part("L6", store, 120) for store in STORES),
        *(Part("L6r", store, 12) for store in STORES),
        *(Part("L6g", flow, 1) for flow in (*DAMAGED, *REFUSED)),
    ],
    "world": [Part(plan, flow, count) for plan, count in worldly.QUICK.items() for flow in worldly.FLOWS[plan]],
}
"""By test file."""
AT_LEAST, KILLS_AT_LEAST = 3_000, 500


APART = frozenset({*worldly.LEVELS, "L14a", "L14s"})


def level_of(plan: str) -> str:
    """The level that a plan belongs to: its number, but for those that are counted by themselves."""
    return plan if plan in APART else plan.rstrip("abcdefghijklmnopqrstuvwxyz")


def counted_at_least(part: Part) -> int:
    """How many of them have to count: in the other ones nothing happened, for reasons that are printed."""
    shares = {
        "L1": 0.5, "L3": 0.9, "L4": 0.9, "L5": 0.9, "L9": 0.9, "L9d": 0.5, "L13": 0.9, "L13s": 5.0, "L14a": 0.9, "L14s": 0.9,
        **worldly.COUNTED,
    }  # fmt: skip
    share = shares.get(part.plan, shares.get(level_of(part.plan), 1.0))
    if part.flow == ANY or (part.flow in FLOWS and FLOWS[part.flow].threads):
        share *= 0.8  # Its last boundaries come and go: branches that meet share a commit.
    return int(part.count * share)
