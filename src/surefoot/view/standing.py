"""How a run stands, in words: its status, and whether somebody has to do something about it.

The journal knows that a run was being driven; only the store knows whether that process still lives. A run
whose process is gone stands still as surely as one that stopped, and is shown that way.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from surefoot.core.doubt import open_questions, unanswered
from surefoot.core.entry import RunAdopted, Stop
from surefoot.core.state import DRIVEN, ENDED, QUEUED, STOPPED, WAITING, RunState, status_after_stop

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
    asked: Asked | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a person has to see it before answering."""

    form: str
    question: str
    details: str
    """JSON as recorded; empty: none."""
    wanted: str
    """JSON Schema of an answer; empty: anything."""
    by: tuple[str, ...]
    """Who may answer; empty: anybody."""
    due: int
    """Until when, microseconds since 1970; 0: for ever."""
    shown: str
    """Digest of all that is shown: the answer is bound to it."""


def standing(status: str, *, driven: bool, stops: Collection[Stop] = ()) -> str:
    """The status for people: a run that nobody drives is not running, and with an open question not ready."""
    if stops and (status in DRIVEN or status == QUEUED):
        return status_after_stop(stops)
    return ABANDONED if status in DRIVEN and not driven else status


def needs(state: RunState, *, driven: bool) -> tuple[Stop, ...]:
    """What a person has to answer, recorded as a stop or not. A living process may be waiting for an answer, too."""
    if not driven:
        return open_questions(state)
    asked = () if state.status in ENDED else state.questions()
    return (*state.stops, *(unanswered(state.run, past) for past in asked))


def rank(stands: str) -> int:
    return ORDER.index(stands) if stands in ORDER else len(ORDER)


def reasons(stops: tuple[Stop, ...], where: str = "", asked: Mapping[str, Asked] | None = None) -> tuple[Reason, ...]:
    """Stops; `where` is what commands need to find the store (` --store URL`), `asked` the open questions."""
    return tuple(
        Reason(
            stop.reason,
            stop.message,
            stop.address,
            tuple(Cure(when, _located(do, where)) for when, do in stop.cures),
            dict(stop.facts),
            (asked or {}).get(stop.address),
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
    return ", ".join(map(_in_brief, stops))


def _in_brief(stop: Stop) -> str:
    question = stop.facts.get("question")
    return f"{stop.address}: {question}" if question else f"{stop.reason} {stop.address}".strip()
