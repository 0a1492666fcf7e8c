"""The state of a run, in words: its status, and whether a person has to act.

The journal records that a run was being driven; only the store knows whether that process is still alive. A run
whose process is gone has stopped as surely as one with a recorded stop, and is shown that way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core import values
from surefoot.core.cure import APP, Advice, Cure, command
from surefoot.core.doubt import open_questions, unanswered
from surefoot.core.entry import Drift, RunAdopted, RunStopped, Stop
from surefoot.core.need import in_brief
from surefoot.core.parking import why_parked
from surefoot.core.reopening import failed_calls, failed_undos, undo_again, undone_around, undone_at_last
from surefoot.core.state import CANCELLED, DONE, DRIVEN, ENDED, FAILED, QUEUED, STOPPED, WAITING, RunState, status_after
from surefoot.view import text
from surefoot.view.words import UNKNOWN_APP, Help, helps

DAMAGED: Final = "damaged"
ABANDONED: Final = "cut off"
"""Running or sleeping by its journal, but its process is gone."""
READY: Final = "ready"
"""Begun, and released: a resume makes progress. A run that was never begun is queued."""
PRUNED: Final = "pruned"

ORDER: Final = (DAMAGED, STOPPED, WAITING, ABANDONED, READY, QUEUED)
"""Runs that need a person come first, in this order; then those that left effects; then the rest, newest first."""
NAMED_RUNS: Final = 3
"""How many of the awaited runs are named; the others are only counted."""


class Reason(Struct, frozen=True):
    """Why a run stopped."""

    type: str
    message: str
    address: str = ""
    cures: tuple[Help, ...] = ()
    facts: Mapping[str, Any] = {}
    drift: tuple[Drift, ...] = ()
    asked: Asked | None = None


class Asked(Struct, frozen=True):
    """A question as a person has to read it before answering."""

    form: str
    question: str
    details: str
    """JSON as recorded; empty: none."""
    wanted: str
    """JSON Schema of an answer; empty: anything."""
    by: tuple[str, ...]
    """Who may answer; empty: any person."""
    due: int
    """The end of its time, microseconds since 1970; 0: for ever."""
    shown: str
    """Digest of all that is shown: the answer is bound to it."""


class Wait(Struct, frozen=True):
    """What a run waits for, if no process drives it and a worker takes it up by itself."""

    until: int
    """Microseconds since 1970."""
    runs: tuple[str, ...] = ()
    begins: bool = False
    """Whether nothing of it was executed yet."""
    parked: str = ""
    """What it needs and is away; empty: its own code asked for the wait."""

    def __str__(self) -> str:
        if self.runs:
            return f"waiting for {'run' if len(self.runs) == 1 else 'runs'} {text.some(self.runs, NAMED_RUNS)}"
        if self.parked:
            return f"parked: {self.parked}; looks again at {text.clock_time(self.until)}"
        return f"{'starts at' if self.begins else 'sleeping until'} {text.clock_time(self.until)}"


class Failure(Struct, frozen=True):
    """The failure that ended a run."""

    type: str
    message: str
    can_be_retried: bool = True
    """Whether it can go on where it failed, once the cause is fixed."""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


class Stands(Struct, frozen=True):
    """The state of a run, for people: without a process it is not running, and with an open question not ready."""

    status: str
    stops: tuple[Stop, ...] = ()
    wait: Wait | None = None
    damage: str = ""
    """Why its journal cannot be read."""
    failure: Failure | None = None
    left: tuple[str, ...] = ()
    """Effects left in doubt or done at its end: a person should look at them."""
    undos: tuple[str, ...] = ()
    """Undos that failed for good, which can be tried again."""
    parked: str = ""
    """What it needs and is away, while a process drives it."""
    elsewhere: str = ""
    """How it goes on, if only the framework that hosts it can take it up."""

    @property
    def needs_a_person(self) -> bool:
        return self.status in ORDER and self.wait is None

    @property
    def rank(self) -> int:
        return ORDER.index(self.status) if self.needs_a_person else len(ORDER) + (not self.left)

    @property
    def brief(self) -> str:
        """The few words beside a run in a list: `InDoubt refund#1`."""
        if self.wait is not None:
            return str(self.wait)
        if self.status in _BRIEF:
            return _BRIEF[self.status]
        if self.left or self.failure is not None:
            told = [left_in_words(self.left)] if self.left else []
            return "; ".join([*told, str(self.failure)] if self.failure is not None else told)
        if self.parked:
            return f"parked: {self.parked}"
        return self.damage or ", ".join(map(in_brief, self.stops))


def left_in_words(left: tuple[str, ...]) -> str:
    return f"left in doubt or done: {text.some(left, NAMED_RUNS)}"


_BRIEF: Final = {
    ABANDONED: "its process is gone; ready to go on",
    READY: "ready to go on",
    QUEUED: "waits for a worker or a resume",
}


def stands(state: RunState, *, driven: bool, now: int) -> Stands:
    how = _stands(state, driven=driven, now=now)
    created = state.created
    if created is None or not created.hosted or how.status in ENDED:
        return how
    thread = f" on thread {text.visible(created.labels['thread'])}" if "thread" in created.labels else ""
    return replace(how, elsewhere=f"invoke the graph of {created.hosted} again{thread}, with None as its input")


def _stands(state: RunState, *, driven: bool, now: int) -> Stands:
    if state.pruned is not None:
        return Stands(f"{state.status}, {PRUNED}")  # Its records are gone: it is not simply done.
    stops = needs(state, driven=driven)
    if stops and (state.status in DRIVEN or state.status == QUEUED):
        return Stands(status_after(RunStopped(stops), state.status), stops)
    if driven or stops or state.status in ENDED:
        left = state.left if state.status in ENDED else ()
        if state.status == CANCELLED:
            left += tuple(past.address for past in state.in_doubt())
        parked = why_parked(state) if state.status in DRIVEN and not stops else ""
        undos = tuple(past.address for past in failed_undos(state)) if state.status in (DONE, FAILED) else ()
        return Stands(state.status, stops, failure=_failure(state), left=left, undos=undos, parked=parked)
    begins = state.status == QUEUED
    due = state.due if not begins else state.created.due if state.created else None
    children = () if begins else state.children
    if state.claimant is not None or (due is None and not children):
        return Stands(ABANDONED if state.status in DRIVEN else _waits(state) if begins else state.status)
    # A worker has released it, or none has taken it up yet. Any event that woke it changed the time.
    woken = state.standing.wake is not None and state.standing.wake <= state.newest_at
    if woken or (due is not None and due.at <= now):
        return Stands(_waits(state))
    until, parked = 0 if due is None else due.at, "" if begins else why_parked(state)
    return Stands(state.status, wait=Wait(until, children, begins=begins, parked=parked))


def _waits(state: RunState) -> str:
    """Nothing blocks it. If it has a queue, a worker takes it up by itself."""
    in_queue = state.created is not None and bool(state.created.queue)
    return READY if state.epoch and not in_queue else QUEUED


def _failure(state: RunState) -> Failure | None:
    if state.status != FAILED or state.error is None:
        return None
    # Effects undone by a saga would count as done again if the run went on after it.
    failed = failed_calls(state)
    undone = undone_around(state, failed) if failed else undone_at_last(state)
    return Failure(*values.error_summary(state.error), undone is None)


def needs(state: RunState, *, driven: bool) -> tuple[Stop, ...]:
    """Open questions for a person, recorded as a stop or not. A living process may be waiting for an answer too."""
    if not driven:
        return open_questions(state)
    asked = () if state.status in ENDED else state.questions()
    return (*state.stops, *(unanswered(state.run, past) for past in asked))


def reasons(
    stops: tuple[Stop, ...], where: str = "", asked: Mapping[str, Asked] | None = None, app: str = UNKNOWN_APP
) -> tuple[Reason, ...]:
    """Stops; `where`: the URL of the store, for commands. `asked`: the open questions."""
    return tuple(
        Reason(
            stop.reason,
            str(stop),
            stop.address,
            tuple(helps(cure, where, app) for cure in stop.cures),
            dict(stop.facts),
            stop.drift,
            (asked or {}).get(stop.address),
        )
        for stop in stops
    )


def what_helps(run: str, how: Stands, where: str = "", app: str = UNKNOWN_APP) -> tuple[Help, ...]:
    """What helps for a run that has failed, or has stopped without an open question."""
    return tuple(helps(cure, where, app) for cure in _cures(run, how))


def _cures(run: str, how: Stands) -> Iterator[Cure]:
    if how.failure is not None and how.failure.can_be_retried:
        yield command("runs retry", run, failed=True, when="fixed?")
        return
    if how.failure is not None:
        yield Advice("fixed?", "start it anew, under another id: this one stays failed")
    if how.undos:
        yield undo_again(run, how.undos, when="undo what is left?")
    elif how.elsewhere:
        yield Advice("go on:", how.elsewhere)
    elif how.status in (ABANDONED, READY, QUEUED) and how.wait is None:
        yield command("runs resume", run, app=APP, when="go on with:")
        yield Advice("or:", "the same command that started it, with the same id")
        yield command("worker", app=APP, when="or a worker:")


def process(claimant: RunAdopted | None) -> str:
    if claimant is None:
        return ""
    return f"worker {claimant.worker[:8]} on host {claimant.host} (pid {claimant.pid})"
