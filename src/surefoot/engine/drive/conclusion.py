"""How a drive ends: what the end of the function means for the run, decided in one place and recorded.

In this order: on trouble of ours the run is released, and on an interruption too; a stop is recorded; a run that only
waits is suspended, or handed back; a cancelled run is over. Any other run has really ended, but only if every recorded
effect was asked for and none is in doubt.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from typing import Any

from msgspec import Raw, Struct

from surefoot.core import failures, values
from surefoot.core.code_changes import no_longer_asked
from surefoot.core.command import Append, Done, Failed, Halted, Returned
from surefoot.core.cure import command
from surefoot.core.doubt import left_behind, open_question
from surefoot.core.entry import (
    CallsUnclaimed,
    Due,
    Entry,
    RunCancelled,
    RunDone,
    RunFailed,
    RunReleased,
    RunStopped,
    RunSuspended,
    Stop,
)
from surefoot.core.history import Past, PastCall, PastEffect, is_child, is_rewound, may_have_happened
from surefoot.core.parking import unavailable
from surefoot.core.readiness import HANDED_BACK
from surefoot.core.reopening import is_over, is_void
from surefoot.engine.declare.call_spec import unknown
from surefoot.engine.declare.drifts import STOP
from surefoot.engine.declare.signals import CancelSignal, ContinueSignal, ReleaseSignal
from surefoot.engine.process.config import alert_error, loud
from surefoot.engine.session.questions import alert_of, identity
from surefoot.engine.session.session import Session
from surefoot.errors import Cancelled, Fenced, JournalCorrupt, Stopped, StoreUnavailable, SurefootError, UsageError


class Suspended(Struct, frozen=True):
    """The run only waits: it is taken up again when it can go on."""


Conclusion = Generator[Append, Any, Done | Failed | Halted | Suspended | BaseException]
log = logging.getLogger("surefoot")


def conclude(session: Session, outcome: Returned | BaseException) -> Conclusion:
    """Decide what the end of the function means, and record it. Returns the result of `.run`."""
    _refuse_loose_ends(session, outcome)
    if session.stops.trouble is not None:
        yield from _release(session, session.stops.trouble)
        _alert_of(session, session.stops.trouble)
        return session.mask.error(session.stops.trouble)
    if session.stops.found:
        return (yield from _stop(session))
    if session.stops.interruption is not None:
        yield from _release(session, session.stops.interruption)
        return session.stops.interruption
    if session.stops.waits:
        return (yield from _suspend(session))
    if session.state.cancel is not None or isinstance(outcome, CancelSignal):
        left = what_is_left(session)
        tell_what_is_left(session)  # First: after a crash in between, people are alerted twice instead of never.
        yield Append(RunCancelled(left))
        cancel = session.state.cancel
        note = f": {cancel.note}" if cancel is not None and cancel.note else ""
        return Cancelled(f"run {session.run} was cancelled{'' if cancel is None else f' by {cancel.by}{note}'}")
    if isinstance(outcome, ReleaseSignal):
        yield from _release(session, outcome.error)
        return outcome.error
    outcome = session.stops.continuation or outcome
    if not isinstance(outcome, Returned | Exception | ContinueSignal):
        yield from _release(session, outcome)
        return outcome
    if isinstance(outcome, Exception) and (away := unavailable(outcome)) is not None:
        session.stops.park(away)
        return (yield from _suspend(session))
    if isinstance(outcome, UsageError | Stopped | StoreUnavailable | Fenced):
        # Misuse, another run's stop, a store in trouble: not caused by this run, so it has not failed.
        yield from _release(session, outcome)
        return outcome
    return (yield from _finish(session, outcome))


def foreseen(session: Session, outcome: Returned | BaseException) -> tuple[Any, list[Entry]]:
    """The conclusion of a drive for that end, and the entries it would write. Nothing is written."""
    entries: list[Entry] = []
    program = conclude(session, outcome)
    try:
        while True:
            entries.append(next(program).entry)
    except StopIteration as end:
        return end.value, entries


def _refuse_loose_ends(session: Session, outcome: Returned | BaseException) -> None:
    ended_by_itself = isinstance(outcome, Returned | Exception | ContinueSignal) and session.stops.interruption is None
    stands_still = session.stops.trouble is not None or session.stops.found or session.stops.waits
    if session.flight.loose and ended_by_itself and not stands_still:
        session.stops.misuse(
            f"run {session.run}: the workflow ended while {', '.join(session.flight.loose)} was still "
            "running in a task or thread of its own. Wait for it, or use sf.gather."
        )


def _finish(session: Session, outcome: Returned | Exception | ContinueSignal) -> Conclusion:
    unasked = [past for past in session.replay.unasked() if not is_void(past)]
    # A person who rewound the run may want another path: that is a warning, not a stop.
    given_up = _given_up(session, unasked)
    session.stops.found += session.fence.open_removed() or _unsettled(session, unasked, given_up)
    if session.stops.found:
        return (yield from _stop(session))
    if unclaimed := tuple(past.address for past in unasked if isinstance(past, PastCall)):
        if not session.dry:
            _warn_unclaimed(session, unclaimed, given_up)
        yield Append(CallsUnclaimed(unclaimed))
    if forgotten := session.losses.no_longer_asked():
        loud(
            f"run {session.run}: effects that were executed before it fell back are not asked for any more: "
            f"{', '.join(forgotten)}. What they did outside is still there."
        )
        yield Append(CallsUnclaimed(tuple(forgotten)))
    if isinstance(outcome, Exception) and session.on_failure == STOP:
        session.stops.found.append(_workflow_failed(session, outcome))
        return (yield from _stop(session))
    _tell_what_failed_in_doubt(session, goes_on=isinstance(outcome, ContinueSignal))
    if isinstance(outcome, ContinueSignal):
        return outcome
    left = tuple(session.notices.left_behind)
    if isinstance(outcome, Returned):
        yield Append(RunDone(outcome.raw, left))
        return Done(outcome.raw)
    raw = Raw(values.encode_error(outcome, session.mask))
    yield Append(RunFailed(raw, left))
    return Failed(raw, outcome)


def _given_up(session: Session, unasked: list[Past]) -> set[str]:
    """Executed effects and children that the run may leave out at its end. An undo goes with its effect."""
    calls = [past for past in unasked if isinstance(past, PastEffect) or is_child(past)]
    given_up = {past.address for past in calls if is_rewound(past) or session.replay.lets_go(past)}
    given_up |= {one.undo.address for one in session.replay.undos if is_over(one, session.replay.matcher.asked)}
    return given_up - {one.undo.address for one in session.replay.taken_back()}


def _tell_what_failed_in_doubt(session: Session, *, goes_on: bool = False) -> None:
    """The run, or this segment of it, ends, but some of its effects may have happened: people are alerted. Sagas have reported theirs."""
    session.notices.tell_the_rest()
    names = [address for address, told in session.notices.left_behind.items() if not told]
    if names and not session.dry:
        loud(
            f"run {session.run} {'goes on as new' if goes_on else 'has ended'}, and nobody knows whether these effects happened: {', '.join(names)}. "
            f"They failed in doubt, and nothing was undone. Look outside what became of them.",
            run=session.run,
            kind="InDoubt",
        )


def _workflow_failed(session: Session, error: Exception) -> Stop:
    """`on_failure="stop"`: no end, but a stop that a person can lift."""
    run, told = session.run, session.mask(f"{type(error).__name__}: {failures.message(error)}".rstrip(": "))
    message = f"run {run}: the workflow raised {told}. What it did is on record; nothing is lost."
    cures = (command("runs retry", run, failed=True, when="fixed?"), command("runs cancel", run, when="give up?"))
    return Stop("WorkflowFailed", message, facts={"error": told}, cures=cures)


def _unsettled(session: Session, unasked: list[Past], given_up: set[str]) -> list[Stop]:
    """Effects that the code treats as done although they were undone; recorded effects that it no longer asks for; or
    effects whose outcome is unknown.
    """
    if undone := session.replay.taken_back():
        return [session.fence.goes_on_from(undone)]
    if missing := [past for past in unasked if may_have_happened(past) and past.address not in given_up]:
        return [no_longer_asked(session.run, missing, session.replay.matcher.effects.names, unknown(missing))]
    # Code that was cancelled, or that caught a signal of ours, went on without them.
    doubtful = [past for past in session.journal.in_doubt() if past.address not in given_up]
    return [open_question(session.run, past, "the code came to its end without it") for past in doubtful]


def _warn_unclaimed(session: Session, unclaimed: tuple[str, ...], given_up: set[str]) -> None:
    steps = [address for address in unclaimed if address not in given_up]
    if steps:
        log.warning("run %s: the code no longer asks for recorded steps: %s", session.run, ", ".join(steps))
    if given_up:
        log.warning(
            "run %s: effects that were executed before the run was sent back, or that sf.removed or a person "
            "(match --keep) lets go, are not asked for any more, and nothing was undone: %s",
            session.run,
            ", ".join(sorted(given_up)),
        )


def _stop(session: Session) -> Conclusion:
    earlier = set(map(identity, session.notices.earlier_stops))
    if session.claim.live or earlier != set(map(identity, session.stops.found)):
        yield Append(RunStopped(tuple(session.stops.found), _earliest(session), tuple(session.stops.children)))
        if not session.dry:
            session.runtime.observer.run_stopped(session.run, tuple(session.stops.found))
    for stop in session.stops.found:
        if identity(stop) not in earlier | session.notices.told and not session.dry:
            alert_of(session, stop)
    return Halted(session.stops.found[0])


def _suspend(session: Session) -> Conclusion:
    """The run only waits. A cancellation or an answer that came meanwhile makes it ready."""
    if session.stops.handed_back:
        if session.claim.live:
            yield Append(RunReleased(HANDED_BACK))
    else:
        yield Append(RunSuspended(_earliest(session), tuple(session.stops.children), session.stops.parked_why))
    return Suspended()


def _earliest(session: Session) -> Due | None:
    return min(session.stops.dues, key=lambda due: due.at, default=None)


def _release(session: Session, error: BaseException) -> Generator[Append, Any, None]:
    """Release the claim, so that others need not wait for a process that has given up."""
    name = type(error).__name__
    if session.claim.live:
        why = session.mask(f"{name}: {error}") if isinstance(error, Exception) else f"interrupted by {name}"
        yield Append(RunReleased(why))


def what_is_left(session: Session) -> tuple[str, ...]:
    """Effects of a cancelled run that failed in doubt, or that its sagas could not undo."""
    for past in [past for past in session.state.effects() if past.gave_up]:
        session.notices.left_behind.setdefault(past.address, False)
    return tuple(session.notices.left_behind)


def tell_what_is_left(session: Session) -> None:
    """A cancelled run is over, but its effects may have happened outside: a person should look."""
    _tell_what_failed_in_doubt(session)
    for past in () if session.dry else session.journal.in_doubt():
        stop = left_behind(session.run, past)
        log.warning("%s", stop)
        alert_of(session, stop)


def _alert_of(session: Session, trouble: SurefootError) -> None:
    """A recorded value that cannot be read needs a person too. The code that steps back from damage reports it."""
    if session.dry or not isinstance(trouble, Stopped) or isinstance(trouble, JournalCorrupt):
        return
    if trouble.run_id == session.run:
        trouble.name_store(session.runtime.store.url)
        alert_error(trouble, session.run)
