"""What a person has to do for a run, by kind: decided from its stops or its end, and kept in the index.

The list of runs and every inbox show this without reading a journal. Of several stops the most urgent one is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.entry import Due, Stop
from surefoot.core.visible import shorten, visible

DAMAGE: Final = "damage"
IN_DOUBT: Final = "in_doubt"
DRIFT: Final = "drift"
CODE_CHANGED: Final = "code_changed"
SCHEMA_MISMATCH: Final = "schema_mismatch"
QUARANTINED: Final = "quarantined"
QUESTION: Final = "question"
EVENT: Final = "event"
STOPPED: Final = "stopped"
"""A stop of no other kind."""
FAILED: Final = "failed"
LEFT: Final = "left"
"""It has ended, and left effects in doubt or undone."""

KINDS: Final = (
    DAMAGE, IN_DOUBT, DRIFT, CODE_CHANGED, SCHEMA_MISMATCH, QUARANTINED, STOPPED, QUESTION, EVENT, LEFT, FAILED,
)  # fmt: skip
"""The most urgent first."""

_BY_REASON: Final = {
    "InDoubt": IN_DOUBT,
    "Drifted": DRIFT,
    "CodeChanged": CODE_CHANGED,
    "SchemaMismatch": SCHEMA_MISMATCH,
    "Quarantined": QUARANTINED,
    "WaitingForAnswer": QUESTION,
    "JournalCorrupt": DAMAGE,
    "CodecMissing": DAMAGE,
}
_LONGEST: Final = 200


class Need(Struct, frozen=True):
    kind: str = ""
    """Empty: nothing is needed from a person."""
    address: str = ""
    """The call in question, if there is one."""
    brief: str = ""
    """A few words, safe to show."""
    until: int | None = None
    """Until when a person should answer, microseconds since 1970."""


NO_NEED: Final = Need()


def of_stops(stops: Sequence[Stop], due: Due | None = None) -> Need:
    """Of a stopped run, with these stops unanswered."""
    if not stops:
        return NO_NEED
    first = min(stops, key=lambda stop: KINDS.index(_kind(stop)))
    return Need(_kind(first), first.address, _brief(in_brief(first)), due.at if due is not None else None)


def of_end(left: Sequence[str], error: Raw | None = None) -> Need:
    """Of a run that has ended; `error`: its failure."""
    if left:
        return Need(LEFT, left[0], _brief(", ".join(left)))
    if error is None:
        return NO_NEED
    kind, message = values.error_summary(error)
    return Need(FAILED, brief=_brief(f"{kind}: {message}" if message else kind))


def in_brief(stop: Stop) -> str:
    """The few words beside a run in a list: `InDoubt refund#1`."""
    if event := stop.facts.get("event"):
        return f"{stop.address}: waiting for event {event!r}"
    question = stop.facts.get("question")
    return f"{stop.address}: {question}" if question else f"{stop.reason} {stop.address}".strip()


def _brief(text: str) -> str:
    return shorten(visible(text), _LONGEST)


def _kind(stop: Stop) -> str:
    kind = _BY_REASON.get(stop.reason, STOPPED)
    return EVENT if kind == QUESTION and "event" in stop.facts else kind
