"""Taking up a run that was handed to a worker: it is claimed before anything of it is executed, and nothing is waited for.

So a run that kills its workers leaves a trace each time, and is quarantined in the end. What came of it is a value.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from surefoot.core.claim import Claimed, Driven, Exists, Lost
from surefoot.core.command import Append, Claim, Do, Done, Routine
from surefoot.core.cure import command
from surefoot.core.entry import RunReleased, Stop
from surefoot.core.readiness import HANDED_BACK
from surefoot.core.state import ENDED, RunState
from surefoot.core.timer import MICROS
from surefoot.engine.declare import code
from surefoot.engine.declare.plan import Plan
from surefoot.engine.drive import claimant, deploys, dry_run, fallback, parents, start
from surefoot.engine.drive.conclusion import Suspended
from surefoot.engine.drive.outcome import raised
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.session.session import Session
from surefoot.errors import JournalCorrupt
from surefoot.store.contract import HELD_SECONDS, Head

UNWIND_SECONDS = 5.0
"""A worker does not keep a run in memory for a wait that is longer."""
MOST_STARTS = 5
"""A run that was taken up so often without getting any further is quarantined."""


class Ended(Struct, frozen=True):
    """The run was driven here to its end, or to a stop or a failure."""

    error: BaseException | None = None
    """What `.run` would raise; None: it is done."""


class PassedBy(Struct, frozen=True):
    """The run was not ready, or somebody else was quicker. Nothing of it was executed here."""


class LeftToOthers(Struct, frozen=True):
    """The code here cannot go on with the run; that of another worker may. Nothing of it was executed here."""


Takeover = Ended | Suspended | PassedBy | LeftToOthers


def taking_up(runtime: Runtime, plan: Plan, run: str, found: tuple[RunState, Head]) -> Routine[Takeover]:
    """What a worker does with a run that was handed to it."""
    state, head = found
    if not _is_ready(runtime, state):
        if state.standing.wake is None:  # Else its line is right, and only this machine's wall clock is ahead.
            yield Do(partial(fallback.renew_row, runtime.store, run))
        return PassedBy()
    if state.standing.wake is not None and (yield Do(partial(parents.waits_in_vain, runtime, state, head))):
        return PassedBy()
    start.warn_of_clock(runtime, state)
    session = start.session_for(runtime, plan, state, head, unwind_seconds=UNWIND_SECONDS)
    try:
        outcome = yield from start.enlisted(session, _claimed(session, plan))
        if isinstance(outcome, JournalCorrupt):
            raise outcome
    except JournalCorrupt as error:
        yield Do(partial(start.step_back, runtime, plan, run, error, session))
        raise  # It is ready to be taken up again.
    match outcome:
        case LeftToOthers() | PassedBy():
            return outcome
        case Driven() | Lost() | Exists():
            return PassedBy()
        case Suspended():
            if not session.lookup.is_unheard:
                runtime.has_driven(run, session.journal.epoch, plan.definition.fn)
            return outcome
        case Done():
            return Ended()
        case _:
            return Ended(raised(session, outcome))


def _claimed(session: Session, plan: Plan) -> Routine[start.Drive | PassedBy | LeftToOthers]:
    poison = _quarantine(session.state) if session.state.starts >= MOST_STARTS else None
    if poison is None and (yield from _is_tried_first(session)):
        yield from dry_run.rehearsing(session, plan)
        if (left := (yield from _left_to_others(session))) is not None:
            return left
    session.claim.rehearses = poison is None and not session.rehearsed and dry_run.is_needed(session, plan)
    claim = yield Claim()
    if not isinstance(claim, Claimed):
        return claim  # type: ignore[no-any-return]
    if session.claim.rehearses:
        yield from dry_run.rehearsing(session, plan)
        if (left := (yield from _left_to_others(session))) is not None:
            return left
    if poison is not None:
        session.rehearsed = True
        session.stops.found.append(poison)
    return (yield from start.drive(session, plan))


def _is_tried_first(session: Session) -> Routine[bool]:
    """Whether it is rehearsed before it is claimed. One that may have been handed out before, and got nowhere, is claimed
    first: should its code kill this worker, too, that is known, and counted.
    """
    state, runtime = session.state, session.runtime
    now = runtime.clock.now()
    wake = state.standing.wake
    # A run that another worker was given since it is ready would be kept for that worker for so long.
    is_handed_out_first = wake is not None and now - wake < HELD_SECONDS * MICROS
    if state.starts == 0 and (deploys.stands_at_code(state) or is_handed_out_first):
        return True
    return bool((yield Do(lambda: deploys.tries_first(runtime.store, state, code.digest(), now))))


def _left_to_others(session: Session) -> Routine[PassedBy | LeftToOthers | None]:
    """The rehearsal has met a stop for the code, and the code of another worker may go on with the run.

    A run that was not claimed yet is left as it is, also if it stands at the same stop already. One that was claimed is
    handed back as if it had not been, unless it was taken up in vain before.
    """
    store, state, is_live = session.runtime.store, session.state, session.claim.live
    if not deploys.is_about_code(session.stops.found) or (is_live and state.starts > 1):
        return None
    if not is_live and tuple(session.stops.found) == state.stops:
        return PassedBy()
    if not (yield Do(lambda: deploys.may_be_served_elsewhere(store, state, code.digest()))):
        return None
    if is_live:
        yield Append(RunReleased(HANDED_BACK))
    return LeftToOthers()


def _is_ready(runtime: Runtime, state: RunState) -> bool:
    """The index is a cache, and a wall clock may be wrong: the journal and the boot clock decide."""
    if state.status in ENDED or claimant.is_driven(runtime, state):
        return False
    if deploys.stands_at_code(state):
        return True  # It is handed out only where the code is another one than it was stopped by.
    if state.claimant is not None:
        return True  # Its process is gone.
    due = state.due if state.due is not None else state.created.due if state.created and state.seq == 1 else None
    if due is not None and state.standing.wake == due.at:
        return start.is_due(runtime, due)
    return state.standing.wake is not None


def _quarantine(state: RunState) -> Stop:
    died = ", which died while rehearsing: its code was being replayed, and nothing of it executed. "
    how = f": {state.let_go_why}. " if state.let_go_why else died if state.rehearsing else ", which died. "
    message = (
        f"run {state.run}: quarantined: it was taken up {state.starts} times, and each time it ended before anything "
        f"new was recorded; last by {state.last_claimant}{how}No worker takes it up any more."
    )
    cures = (
        command("runs show", state.run, when="look"),
        command("runs release", state.run, when="fixed? try again"),
    )
    return Stop("Quarantined", message, facts={"starts": str(state.starts)}, cures=cures)
