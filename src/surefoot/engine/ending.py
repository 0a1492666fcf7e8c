"""How a drive ends: what the way the function ended means for the run, decided in one place and recorded.

In this order: trouble of ours lets go of the run, and so does an interruption; a stop is recorded; a run that only waits
is suspended, or handed back; a cancelled one is over. Only what is left has really ended, and only if every recorded
effect was asked for and none is in doubt.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Generator
from typing import Any

from msgspec import Raw, Struct

from surefoot.core import failures, values
from surefoot.core.command import Append, Done, Failed, Halted, Returned
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
from surefoot.core.history import Past, no_longer_asked
from surefoot.core.matching import is_child, may_have_happened
from surefoot.core.parking import unavailable
from surefoot.core.reopening import is_over, is_void
from surefoot.core.standing import HANDED_BACK
from surefoot.core.state import RunState
from surefoot.engine.config import alert, loud
from surefoot.engine.pasting import name_store
from surefoot.engine.people import alert_of, identity
from surefoot.engine.session import Session
from surefoot.engine.signals import CancelSignal, ContinueSignal
from surefoot.engine.spec import unknown
from surefoot.engine.worldview import STOP
from surefoot.errors import (
    Cancelled,
    Fenced,
    JournalCorrupt,
    Stopped,
    StoreUnavailable,
    SurefootError,
    UsageError,
)


class Suspended(Struct, frozen=True):
    """The run has nothing to do but wait: it is taken up again when it can go on."""


Conclusion = Generator[Append, Any, Done | Failed | Halted | Suspended | BaseException]
log = logging.getLogger("surefoot")


def conclude(session: Session, outcome: Returned | BaseException) -> Conclusion:
    """Decide what the way the function ended means, and record it. Answers what `.run` shall give."""
    _refuse_loose_ends(session, outcome)
    if session.trouble is not None:
        yield from _release(session, session.trouble)
        _alert_of(session, session.trouble)
        return session.mask.error(session.trouble)
    if session.stops:
        return (yield from _stop(session))
    if session.interruption is not None:
        yield from _release(session, session.interruption)
        return session.interruption
    if session.waits:
        return (yield from _suspend(session))
    if session.state.cancel is not None or isinstance(outcome, CancelSignal):
        left = what_is_left(session)
        tell_what_is_left(session)  # First: should we die in between, it is told again, and not never.
        yield Append(RunCancelled(left))
        return Cancelled(f"run {session.run} was cancelled{_by(session.state)}")
    outcome = session.continuation or outcome
    if not isinstance(outcome, Returned | Exception | ContinueSignal):
        yield from _release(session, outcome)
        return outcome
    if isinstance(outcome, Exception) and (away := unavailable(outcome)) is not None:
        session.park(away)
        return (yield from _suspend(session))
    if isinstance(outcome, UsageError | Stopped | StoreUnavailable | Fenced):
        # Misuse, another run's stop, a store in trouble: nothing that this run did, so it has not failed.
        yield from _release(session, outcome)
        return outcome
    return (yield from _finish(session, outcome))


def foreseen(session: Session, outcome: Returned | BaseException) -> tuple[Any, list[Entry]]:
    """What a drive would make of that end, and what it would write. Nothing is written."""
    entries: list[Entry] = []
    program = conclude(session, outcome)
    try:
        while True:
            entries.append(next(program).entry)
    except StopIteration as end:
        return end.value, entries


def _refuse_loose_ends(session: Session, outcome: Returned | BaseException) -> None:
    ended_by_itself = isinstance(outcome, Returned | Exception | ContinueSignal) and session.interruption is None
    stands_still = session.trouble is not None or session.stops or session.waits
    if session.loose and ended_by_itself and not stands_still:
        session.misused(
            UsageError(
                f"run {session.run}: the workflow ended while {', '.join(session.loose)} was still "
                "running in a task or thread of its own. Wait for it, or use sf.gather."
            )
        )


def _finish(session: Session, outcome: Returned | Exception | ContinueSignal) -> Conclusion:
    unasked = [past for past in session.unasked_calls() if not is_void(past)]
    # Whoever sent the run back may want it to go another way: then it is worth knowing, but no stop.
    given_up = _given_up(session, unasked)
    session.stops += session.open_removed() or _unsettled(session, unasked, given_up)
    if session.stops:
        return (yield from _stop(session))
    if unclaimed := tuple(past.address for past in unasked if past.kind in ("step", "effect")):
        if not session.dry:
            _warn_unclaimed(session, unclaimed, given_up)
        yield Append(CallsUnclaimed(unclaimed))
    if forgotten := session.no_longer_asked():
        loud(
            f"run {session.run}: effects that were executed before it fell back are not asked for any more: "
            f"{', '.join(forgotten)}. What they did outside is still there."
        )
        yield Append(CallsUnclaimed(tuple(forgotten)))
    if isinstance(outcome, Exception) and session.on_failure == STOP:
        session.stops.append(_workflow_failed(session, outcome))
        return (yield from _stop(session))
    _tell_what_failed_in_doubt(session)
    if isinstance(outcome, ContinueSignal):
        return outcome
    left = tuple(session.left_behind)
    if isinstance(outcome, Returned):
        yield Append(RunDone(outcome.raw, left))
        return Done(outcome.raw)
    raw = Raw(values.encode_error(outcome, session.mask))
    yield Append(RunFailed(raw, left))
    return Failed(raw, outcome)


def _given_up(session: Session, unasked: list[Past]) -> set[str]:
    """Executed effects and children without which the run may end. An undo goes with its effect."""
    calls = [past for past in unasked if past.kind == "effect" or is_child(past)]
    given_up = {past.address for past in calls if past.rewound or session.lets_go(past)}
    given_up |= {one.undo.address for one in session.undos if is_over(one, session.matcher.asked)}
    return given_up - {one.undo.address for one in session.taken_back()}


def _tell_what_failed_in_doubt(session: Session) -> None:
    """The run ends, in whichever way; nobody may take that for the whole story. Sagas have told of their own."""
    session.tell_the_rest()
    names = [address for address, told in session.left_behind.items() if not told]
    if names and not session.dry:
        loud(
            f"run {session.run} has ended, and nobody knows whether these effects happened: {', '.join(names)}. "
            f"They failed in doubt, and nothing was undone. Look outside what became of them.",
            run=session.run,
            kind="InDoubt",
        )


def _workflow_failed(session: Session, error: Exception) -> Stop:
    """`on_failure="stop"`: no end, but a stop that a person opens."""
    run, told = session.run, session.mask(f"{type(error).__name__}: {failures.message(error)}".rstrip(": "))
    message = f"run {run}: the workflow raised {told}. What it did is on record; nothing is lost."
    quoted = shlex.quote(run)
    cures = (("mended?", f"surefoot runs retry {quoted} --failed"), ("give up?", f"surefoot runs cancel {quoted}"))
    return Stop("WorkflowFailed", message, facts={"error": told}, cures=cures)


def _unsettled(session: Session, unasked: list[Past], given_up: set[str]) -> list[Stop]:
    """Effects that it takes for done and that were undone; recorded ones that it no longer asks for; or those whose outcome
    nobody knows.
    """
    if undone := session.taken_back():
        return [session.goes_on_from(undone)]
    if missing := [past for past in unasked if may_have_happened(past) and past.address not in given_up]:
        return [no_longer_asked(session.run, missing, session.matcher.in_use(), unknown(missing))]
    # Code that was cancelled, or that caught what it must not, went on without them.
    doubtful = [past for past in session.in_doubt() if past.address not in given_up]
    return [open_question(session.run, past, "the code came to its end without it") for past in doubtful]


def _warn_unclaimed(session: Session, unclaimed: tuple[str, ...], given_up: set[str]) -> None:
    steps = [address for address in unclaimed if address not in given_up]
    if steps:
        log.warning("run %s: the code no longer asks for recorded steps: %s", session.run, ", ".join(steps))
    if given_up:
        log.warning(
            "run %s: effects that were executed before the run was sent back, or that sf.removed or a person (surefoot "
            "match --keep) lets go, are not asked for any more, and nothing was undone: %s",
            session.run,
            ", ".join(sorted(given_up)),
        )


def _stop(session: Session) -> Conclusion:
    earlier = set(map(identity, session.earlier_stops))
    if session.live or earlier != set(map(identity, session.stops)):
        yield Append(RunStopped(tuple(session.stops), _earliest(session), tuple(session.children)))
    for stop in session.stops:
        if identity(stop) not in earlier | session.told and not session.dry:
            alert_of(session, stop)
    return Halted(session.stops[0])


def _suspend(session: Session) -> Conclusion:
    """Nothing to do but wait. Whatever came meanwhile (a cancellation, an answer) makes it stand as ready."""
    if session.handed_back:
        if session.live:
            yield Append(RunReleased(HANDED_BACK))
    else:
        yield Append(RunSuspended(_earliest(session), tuple(session.children), session.parked_why))
    return Suspended()


def _earliest(session: Session) -> Due | None:
    return min(session.dues, key=lambda due: due.at, default=None)


def _release(session: Session, error: BaseException) -> Generator[Append, Any, None]:
    """Let go of the claim, so that others need not wait for a process that has given up."""
    name = type(error).__name__
    if session.live:
        why = session.mask(f"{name}: {error}") if isinstance(error, Exception) else f"interrupted by {name}"
        yield Append(RunReleased(why))


def what_is_left(session: Session) -> tuple[str, ...]:
    """Of a cancelled run: effects that failed in doubt, or that its sagas could not undo."""
    failed = (past for past in list(session.state.calls.values()) if past.kind == "effect" and past.gave_up)
    for past in failed:
        session.left_behind.setdefault(past.address, False)
    return tuple(session.left_behind)


def tell_what_is_left(session: Session) -> None:
    """A cancelled run is over, but what may have happened outside is not: a person should look."""
    _tell_what_failed_in_doubt(session)
    for past in () if session.dry else session.in_doubt():
        stop = left_behind(session.run, past)
        log.warning("%s", stop.message)
        alert_of(session, stop)


def _alert_of(session: Session, trouble: SurefootError) -> None:
    """A recorded value that cannot be read needs a person too. Of damage, whoever steps back from it tells."""
    if session.dry or not isinstance(trouble, Stopped) or isinstance(trouble, JournalCorrupt):
        return
    if trouble.run_id == session.run:
        name_store(trouble, session.runtime.store.url)
        kind = type(trouble).__name__
        alert(f"{kind}: {trouble.summary}", trouble.cures, run=session.run, kind=kind)


def _by(state: RunState) -> str:
    cancel = state.cancel
    if cancel is None:
        return ""
    return f" by {cancel.by}" + (f": {cancel.note}" if cancel.note else "")
