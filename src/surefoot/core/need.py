"""What a person has to do for a run, by kind: decided from its stops or its end, and kept in the index.

The list of runs and every inbox show this without reading a journal. Of several stops the most urgent one is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.entry import (
    CallsReopened,
    Due,
    EffectLandedLate,
    Entry,
    FellBack,
    QuestionAsked,
    RunAdopted,
    RunCancelled,
    RunContinued,
    RunDone,
    RunFailed,
    RunRewound,
    Stop,
)
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
LANDED_LATE: Final = "landed_late"
"""An effect was executed by a process that had lost the run by then."""
FELL_BACK: Final = "fell_back"
"""Entries of it were damaged, and it went on before them."""

KINDS: Final = (
    DAMAGE, IN_DOUBT, DRIFT, CODE_CHANGED, SCHEMA_MISMATCH, QUARANTINED, STOPPED, QUESTION, EVENT, LEFT, LANDED_LATE,
    FAILED, FELL_BACK,
)  # fmt: skip
"""The most urgent first."""
TO_KNOW: Final = (LEFT, LANDED_LATE, FAILED, FELL_BACK)
"""Nothing waits for a decision: somebody should know of it, and say so (`Acknowledged`)."""

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
    since: int | None = None
    """From when on, microseconds since 1970."""


NO_NEED: Final = Need()


class News(Struct, frozen=True):
    """What somebody should know of a run, and has not said so yet. There is nothing to decide."""

    kind: str
    """One of `TO_KNOW`."""
    address: str
    """The call it is about; empty: the whole run."""
    brief: str
    """A few words, safe to show."""
    seq: int
    """The entry that says it."""
    at: int
    """When that was, microseconds since 1970."""


_END_OF_THE_END: Final = frozenset({RunAdopted, RunRewound, CallsReopened})
"""The run has not ended after all: what was to be known of its end is not."""
TELLING: Final = _END_OF_THE_END | {RunContinued, RunDone, RunFailed, RunCancelled, FellBack, EffectLandedLate}
"""The entries that change what somebody should know. Callers check this first, as with `readiness.MOVING`."""


def news_after(entry: Entry, known: tuple[News, ...], *, seq: int, at: int, segment_began: int) -> tuple[News, ...]:
    """What somebody should know of the run after this entry. The writer of an entry and whoever folds it later ask here."""
    if type(entry) in _END_OF_THE_END:
        return tuple(one for one in known if one.kind not in (FAILED, LEFT) or one.seq <= segment_began)
    left = tuple(News(LEFT, address, in_short(address), seq, at) for address in getattr(entry, "left", ()))
    match entry:
        case RunFailed(error=error):
            return (*known, *left, News(FAILED, "", in_short(failure(error)), seq, at))
        case FellBack(by="", why=why):  # If a person did it, that person knows.
            return (*known, News(FELL_BACK, "", in_short(why), seq, at))
        case EffectLandedLate(address=address, outcome=outcome):
            return (*known, News(LANDED_LATE, address, in_short(outcome), seq, at))
    return (*known, *left)


def of_stops(stops: Sequence[Stop], due: Due | None = None, since: int | None = None) -> Need:
    """Of a stopped run, with these stops unanswered."""
    if not stops:
        return NO_NEED
    first = min(stops, key=lambda stop: KINDS.index(kind_of(stop)))
    until = due.at if due is not None else None
    return Need(kind_of(first), first.address, in_short(in_brief(first)), until, since)


def of_question(asked: QuestionAsked, since: int) -> Need:
    """Of a run that asks, and whose process waits for the answer."""
    until = asked.due.at if asked.due is not None else None
    return Need(QUESTION, asked.address, in_short(f"{asked.address}: {asked.question}"), until, since)


def of_end(left: Sequence[str], error: Raw | None = None, since: int | None = None) -> Need:
    """Of a run that has ended; `error`: its failure."""
    if left:
        return Need(LEFT, left[0], in_short(", ".join(left)), since=since)
    if error is None:
        return NO_NEED
    return Need(FAILED, brief=in_short(failure(error)), since=since)


def failure(error: Raw) -> str:
    """What a run failed with, in words."""
    kind, message = values.error_summary(error)
    return f"{kind}: {message}" if message else kind


def of_news(news: Sequence[News]) -> Need:
    """Of a run that nobody has to decide anything about."""
    if not news:
        return NO_NEED
    kind = min((one.kind for one in news), key=KINDS.index)
    same = [one for one in news if one.kind == kind]
    brief = ", ".join(one.address for one in same) if kind == LEFT else same[0].brief
    return Need(kind, same[0].address, in_short(brief), since=same[0].at)


def in_brief(stop: Stop) -> str:
    """The few words beside a run in a list: `InDoubt refund#1`."""
    if event := stop.facts.get("event"):
        return f"{stop.address}: waiting for event {event!r}"
    question = stop.facts.get("question")
    return f"{stop.address}: {question}" if question else f"{stop.reason} {stop.address}".strip()


def in_short(text: str) -> str:
    return shorten(visible(text), _LONGEST)


def kind_of(stop: Stop) -> str:
    kind = _BY_REASON.get(stop.reason, STOPPED)
    return EVENT if kind == QUESTION and "event" in stop.facts else kind
