"""A process that has lost its claim and finishes an effect all the same says so: in the run, in its log, and as an alert.

It was paused, or cut off from the store, in the middle of the call; others took the run up meanwhile. What it did then is
a fact that nobody else knows, and that it may no longer record as an outcome. So it leaves a visitor's entry,
`EffectLandedLate`. If the run has begun the effect again by then, it was done twice, and a person has to know at once;
if not, the entry keeps it from being done again without a look.

An outcome that cannot be written because the store is away is owed: it is tried again until the process ends.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from surefoot.core import values
from surefoot.core.cure import JSON, command
from surefoot.core.entry import EffectDone, EffectDoubted, EffectLandedLate, EffectUnstorable, Entry
from surefoot.core.history import PastEffect, PastState
from surefoot.core.state import RunState
from surefoot.engine.process import journal, runtime
from surefoot.engine.process.config import loud
from surefoot.errors import Fenced, StoreUnavailable, SurefootError

if TYPE_CHECKING:
    from surefoot.engine.session.session import Session

RETURNED: Final = "returned"
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 10.0
log = logging.getLogger("surefoot")


class Landing(Struct, frozen=True):
    """An effect that this process has executed, and how that ended."""

    store: bytes
    run: str
    address: str
    key: str
    attempt: int
    epoch: int
    """Of the claim under which it was begun."""
    worker: str
    outcome: str
    ended_here: bool
    """Whether the outcome was refused. Else it was given up before, and matters only if others have taken the run up."""


def matters(session: Session, entries: tuple[Entry, ...], error: SurefootError) -> bool:
    """Whether something that was executed could not be recorded."""
    return isinstance(error, Fenced | StoreUnavailable) and session.claim.live and any(map(_outcome, entries))


def refused(session: Session, entries: tuple[Entry, ...], error: SurefootError) -> None:
    """These could not be recorded. What is the outcome of an effect among them is not lost."""
    if not matters(session, entries, error):
        return
    for entry in entries:
        if outcome := _outcome(entry):
            address, attempt = entry.address, entry.attempt  # type: ignore[attr-defined]
            landing = _landing(session, address, attempt, outcome, ended_here=True)
            if isinstance(error, Fenced):
                _deliver(landing)
                continue
            log.warning(
                "run %s, %s: executed here (%s), and the store is away: it could not be recorded. That is tried again "
                "for as long as this process lives; if it ends before, the effect is in doubt.",
                session.run, address, outcome,
            )  # fmt: skip
            _owe(landing)


def landed(session: Session, address: str, attempt: int, error: BaseException | None) -> None:
    """A call that was given up when its time was over has come to its end. Others may have taken the run up since."""
    outcome = RETURNED if error is None else session.mask(f"raised {type(error).__name__}: {error}")
    _owe(_landing(session, address, attempt, outcome, ended_here=False))


def heard(run: str, entry: EffectLandedLate) -> None:
    """Whoever drives the run now has met such an entry."""
    who = f"worker {entry.worker[:8]} on host {entry.host} (pid {entry.pid})"
    message = (
        f"run {run}, {entry.address}: executed too late by {who}, which had lost its claim ({entry.outcome}). "
        "If it was begun again since, it was done twice: look, and put right what is too much."
    )
    # Not here: this may be the middle of a commit, and alerts run code of the user's.
    threading.Thread(target=loud, args=(message,), kwargs={"run": run, "kind": "landed late"}, daemon=True).start()


def _landing(session: Session, address: str, attempt: int, outcome: str, *, ended_here: bool) -> Landing:
    store = session.runtime.store
    return Landing(
        store.id, session.run, address, session.replay.key_of(address), attempt, session.journal.epoch, session.claim.worker,
        outcome, ended_here,
    )  # fmt: skip


def _outcome(entry: Entry) -> str:
    """How an effect ended, if it may have happened; empty: it did not, or the entry is none of an outcome."""
    match entry:
        case EffectDone():
            return RETURNED
        case EffectUnstorable():
            return "returned what cannot be stored"
        case EffectDoubted() if not entry.runs_in:
            kind, text = values.error_summary(entry.error)
            return f"raised {kind}: {text}"
        case _:
            return ""


def _deliver(landing: Landing) -> None:
    try:
        _visit(landing)
    except SurefootError:
        _owe(landing)


def _owe(landing: Landing) -> None:
    threading.Thread(target=_pay, args=(landing,), name="surefoot-late", daemon=True).start()


def _pay(landing: Landing) -> None:
    wait, pause = threading.Event(), FIRST_PAUSE_SECONDS
    while True:
        try:
            _visit(landing)
        except StoreUnavailable:
            wait.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        except SurefootError as error:
            loud(f"run {landing.run}, {landing.address}: {_told(landing)}, and it cannot be noted there: {error}",
                 run=landing.run, kind="landed late")  # fmt: skip
            return
        else:
            return


def _visit(landing: Landing) -> None:
    open_ = next((one for one in runtime.known() if one.store.id == landing.store and runtime.usable(one.store)), None)
    if open_ is None:
        raise StoreUnavailable("the store is not open in this process any more")
    told: list[str] = []

    def decide(state: RunState) -> EffectLandedLate | None:
        told.clear()
        if not _is_news(state, landing):
            return None
        told.append(_what_follows(state, landing))
        host, pid = os.uname().nodename, os.getpid()
        return EffectLandedLate(
            landing.address, landing.key, landing.attempt, landing.worker, host, pid, landing.outcome
        )

    journal.visit(open_.store, open_.clock, landing.run, decide)
    for what in told:
        loud(f"run {landing.run}, {landing.address}: {_told(landing)}. {what}", run=landing.run, kind="landed late")


def _told(landing: Landing) -> str:
    return (
        f"executed here, too late: this process (worker {landing.worker[:8]}, pid {os.getpid()}) had lost its claim when "
        f"the call ended ({landing.outcome})"
    )


def _is_news(state: RunState, landing: Landing) -> bool:
    """Whether the run does not know it: it was recorded after all, or said before."""
    if any(_is_same(known, landing) for known in state.landed_late):
        return False
    past = state.effect(landing.address)
    if not landing.ended_here:
        return state.epoch > landing.epoch  # Else it is in doubt, and whoever decides about that is here.
    if past is None or (past.attempt, past.epoch) != (landing.attempt, landing.epoch):
        return True
    return past.state in (PastState.IN_DOUBT, PastState.CLEARED)


def _is_same(known: EffectLandedLate, landing: Landing) -> bool:
    told = (known.address, known.key, known.attempt, known.worker, known.outcome)
    return told == (landing.address, landing.key, landing.attempt, landing.worker, landing.outcome)


def _what_follows(state: RunState, landing: Landing) -> str:
    past = state.effect(landing.address)
    if past is None or past.key != landing.key:
        return "The run goes on without it: look what became of it, and put right what is too much."
    if past.attempt > landing.attempt:
        return "It was begun again by then, so that it may have been done TWICE: look, and put right what is too much."
    if past.state in (PastState.IN_DOUBT, PastState.CLEARED):
        settle = command("settle", state.run, landing.address, happened=JSON)
        return f"It has not been begun again. If nobody else finds it: {settle}"
    return f"The run knows it as {_known(past)}."


def _known(past: PastEffect) -> Any:
    return f"{past.state.value}, {past.learned_by}" if past.learned_by else past.state.value
