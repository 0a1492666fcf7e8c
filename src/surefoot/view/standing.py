"""How a run stands, in words: its status, and whether somebody has to do something about it.

The journal knows that a run was being driven; only the store knows whether that process still lives. A run
whose process is gone stands still as surely as one that stopped, and is shown that way.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from surefoot.core.entry import RunAdopted, Stop
from surefoot.core.state import DRIVEN, QUEUED, STOPPED, WAITING, RunState

DAMAGED: Final = "damaged"
ABANDONED: Final = "cut off"
"""Running or sleeping by its journal, but its process is gone."""

ORDER: Final = (DAMAGED, STOPPED, WAITING, ABANDONED, QUEUED)
"""What needs a person comes first, in this order; everything else follows, newest first."""


@dataclass(frozen=True, slots=True)
class Cure:
    """Something that helps: when, and what to do."""

    when: str
    do: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a run stands still."""

    type: str
    message: str
    address: str = ""
    cures: tuple[Cure, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


def standing(status: str, *, driven: bool, asks: bool = False) -> str:
    """The status for people: a run that nobody drives is not running, and with an open question not ready."""
    if not driven and asks and (status in DRIVEN or status == QUEUED):
        return STOPPED
    return ABANDONED if status in DRIVEN and not driven else status


def rank(stands: str) -> int:
    return ORDER.index(stands) if stands in ORDER else len(ORDER)


def reasons(stops: tuple[Stop, ...], where: str = "") -> tuple[Reason, ...]:
    """Recorded stops; `where` is what commands need to find the store (` --store URL`)."""
    return tuple(
        Reason(
            stop.reason,
            stop.message,
            stop.address,
            tuple(Cure(when, _located(do, where)) for when, do in stop.cures),
            dict(stop.facts),
        )
        for stop in stops
    )


def what_helps(state: RunState, stands: str, where: str = "") -> tuple[Cure, ...]:
    """What to do about a run that stands still without an open question."""
    if stands not in (ABANDONED, QUEUED):
        return ()
    resume = _located(f"surefoot runs resume {shlex.quote(state.run)} --app MODULE", where)
    return (Cure("go on with:", resume), Cure("or:", "the same command that started it, with the same id"))


def _located(command: str, where: str) -> str:
    return command + where if command.startswith("surefoot ") else command


def process(claimant: RunAdopted | None) -> str:
    if claimant is None:
        return ""
    return f"worker {claimant.worker[:8]} on host {claimant.host} (pid {claimant.pid})"


def brief(stands: str, stops: tuple[Stop, ...]) -> str:
    """The few words beside a run in a list: `InDoubt refund#1`."""
    if stands == ABANDONED:
        return "its process is gone"
    if stands == QUEUED:
        return "ready to go on"
    return ", ".join(f"{stop.reason} {stop.address}".strip() for stop in stops)
