"""A process that has lost its claim finishes an effect. It reports this in the run, in its log, and as an alert.

The process was paused, or cut off from the store, in the middle of the call. Others took the run up meanwhile. Only this
process knows what it did, but it may no longer record that as an outcome. So it leaves a visitor's entry,
`EffectLandedLate`. If the run has begun the effect again by then, it was done twice, and a person has to know at once.
If not, the entry prevents that the effect is done again without a check.

If the store is away, the outcome cannot be written yet: the process tries again until it ends.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from surefoot.core import values
from surefoot.core.cure import JSON, command
from surefoot.core.entry import EffectDone, EffectDoubted, EffectLandedLate, EffectUnstorable, Entry
from surefoot.core.history import PastState
from surefoot.core.state import RunState
from surefoot.engine.process import journal, runtime
from surefoot.engine.process.config import loud
from surefoot.errors import Fenced, StoreUnavailable, SurefootError

if TYPE_CHECKING:
    from surefoot.engine.session.session import Session

RETURNED: Final = "returned"
_UNDECIDED: Final = (PastState.IN_DOUBT, PastState.CLEARED)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 10.0
log = logging.getLogger("surefoot")


class Landing(Struct, frozen=True):
    """An effect that this process has executed, and how that ended."""

    store: bytes
    run: str
    entry: EffectLandedLate
    """The entry that records it."""
    epoch: int
    """The epoch of the claim under which it was begun."""
    ended_here: bool
    """Whether the outcome was refused. Else the attempt was abandoned, which matters only if others took the run up."""


def matters(session: Session, entries: tuple[Entry, ...], error: SurefootError) -> bool:
    """Whether an executed effect could not be recorded."""
    return isinstance(error, Fenced | StoreUnavailable) and session.claim.live and any(map(_outcome, entries))


def refused(session: Session, entries: tuple[Entry, ...], error: SurefootError) -> None:
    """These entries could not be recorded. Outcomes of effects among them are kept."""
    if not matters(session, entries, error):
        return
    for entry in entries:
        if outcome := _outcome(entry):
            address, attempt = entry.address, entry.attempt  # type: ignore[attr-defined]
            landing = _landing(session, address, attempt, outcome, ended_here=True)
            if not isinstance(error, Fenced):
                log.warning(
                    "run %s, %s: executed here (%s), and the store is away: it could not be recorded. That is tried again "
                    "for as long as this process lives; if it ends before, the effect is in doubt.",
                    session.run, address, outcome,
                )  # fmt: skip
                _owe(landing)
            else:
                try:
                    _visit(landing)
                except SurefootError:
                    _owe(landing)


def landed(session: Session, address: str, attempt: int, error: BaseException | None) -> None:
    """A call that was abandoned after its time has ended. Others may have taken the run up since."""
    outcome = RETURNED if error is None else session.mask(f"raised {type(error).__name__}: {error}")
    _owe(_landing(session, address, attempt, outcome, ended_here=False))


def heard(run: str, entry: Entry) -> None:
    """A visitor wrote this entry into the run that is driven here."""
    if not isinstance(entry, EffectLandedLate):
        return
    who = f"worker {entry.worker[:8]} on host {entry.host} (pid {entry.pid})"
    message = (
        f"run {run}, {entry.address}: executed too late by {who}, which had lost its claim ({entry.outcome}). "
        "If it was begun again since, it was done twice: look, and put right what is too much."
    )
    # Not here: this may be the middle of a commit, and alerts run code of the user.
    threading.Thread(target=loud, args=(message,), kwargs={"run": run, "kind": "landed late"}, daemon=True).start()


def _landing(session: Session, address: str, attempt: int, outcome: str, *, ended_here: bool) -> Landing:
    key, host = session.replay.key_of(address), os.uname().nodename
    entry = EffectLandedLate(address, key, attempt, session.claim.worker, host, os.getpid(), outcome)
    return Landing(session.runtime.store.id, session.run, entry, session.journal.epoch, ended_here)


def _outcome(entry: Entry) -> str:
    """How an effect ended, if it may have happened; empty: it did not, or the entry is no outcome."""
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
            _tell(landing, f", and it cannot be noted there: {error}")
            return
        else:
            return


def _visit(landing: Landing) -> None:
    open_ = next((one for one in runtime.known() if one.store.id == landing.store and one.store.usable), None)
    if open_ is None:
        raise StoreUnavailable("the store is not open in this process any more")
    told: list[str] = []

    def decide(state: RunState) -> EffectLandedLate | None:
        told[:] = _news(state, landing)
        return landing.entry if told else None

    journal.visit(open_.store, open_.clock, landing.run, decide)
    for what in told:
        _tell(landing, f". {what}")


def _tell(landing: Landing, what: str) -> None:
    entry = landing.entry
    loud(
        f"run {landing.run}, {entry.address}: executed here, too late: this process (worker {entry.worker[:8]}, pid "
        f"{entry.pid}) had lost its claim when the call ended ({entry.outcome}){what}",
        run=landing.run, kind="landed late",
    )  # fmt: skip


def _news(state: RunState, landing: Landing) -> Iterator[str]:
    """The consequence for people. None if the run knows it: it was recorded after all, or reported before."""
    entry = landing.entry
    past = state.effect(entry.address)
    is_ours = past is not None and past.attempt == entry.attempt and past.epoch == landing.epoch
    if entry in state.landed_late:
        return
    if not landing.ended_here and state.epoch <= landing.epoch:
        return  # It is in doubt, and this process decides about that.
    if landing.ended_here and is_ours and past is not None and past.state not in _UNDECIDED:
        return
    if past is None or past.key != entry.key:
        yield "The run goes on without it: look what became of it, and put right what is too much."
    elif past.attempt > entry.attempt:
        yield "It was begun again by then, so that it may have been done TWICE: look, and put right what is too much."
    elif past.state in _UNDECIDED:
        settle = command("settle", state.run, entry.address, happened=JSON)
        yield f"It has not been begun again. If nobody else finds it: {settle}"
    else:
        yield f"The run knows it as {past.state.value}{f', {past.learned_by}' if past.learned_by else ''}."
