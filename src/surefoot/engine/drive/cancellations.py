"""Parts of a run that are cancelled from inside: by `asyncio.timeout`, a failing sibling, `task.cancel()`.

A replay answers at once what was slow before, so the cancellation may not strike again, or at another place. Therefore
a call that was cut off is recorded (`CallCancelled`). On replay the call is not made again. It waits for the same
cancellation, for as long as that took the first time and one second more, and then stops: the further path of the code
is unknown.

A cancellation may also strike between two calls, in an await that is not ours. Then the next call records it, even if
the code has dealt with it by then (this is known for the workflow's own task, but not for tasks that the user makes).
On replay the code has to reach that call in the same way: a new call in front of it waits for the cancellation, as
above. Code that is cancelled earlier than before, and so does not ask for recorded calls of its line, begins nothing
new. Code that was not cancelled at all before begins nothing new either.

The caller that waits for the run may be cancelled too. Then the run is released for now. That is no part of the run.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from surefoot.core.address import approval_of
from surefoot.core.code_changes import names_of
from surefoot.core.cure import Advice, Cures, command
from surefoot.core.entry import CallCancelled, QuestionExpired, Stop
from surefoot.core.history import Past, PastEffect, PastState
from surefoot.core.timer import after
from surefoot.engine.declare.current import Place, session_of
from surefoot.engine.declare.signals import PlanSignal, StopSignal
from surefoot.engine.drive import timeouts
from surefoot.engine.session import turns
from surefoot.engine.session.turns import SLACK_SECONDS

if TYPE_CHECKING:
    from surefoot.engine.session.session import Session


def recorded(place: Place, address: str) -> CallCancelled | None:
    """The record that this very call was cut off."""
    cut = place.session.replay.matcher.cuts.get(address)
    return None if cut is None or cut.before else cut


def cut_off(place: Place, address: str) -> None:
    """A cancellation leaves a call. Durable no later than anything that follows from it."""
    place.line.struck = _strikes()
    session = session_of(place)
    if not session.dry and address not in session.state.cuts and not is_unwinding(place):
        session.journal.lazily(CallCancelled(address, _seconds(session)))
        for asked in (address, approval_of(address)):  # The code no longer waits for an answer: a later one is refused.
            past = session.state.calls.get(asked)
            if past is not None and past.kind == "question" and past.state is PastState.OPEN:
                session.journal.lazily(QuestionExpired(past.address))
    for limit in session.stops.limits:
        limit.note_struck()


def cut_off_in_turn(place: Place, address: str) -> None:
    """A recorded outcome waits for its turn, and its caller is cancelled. That is as before only if no later call of
    this line is on record: otherwise that call would be cut off too.
    """
    if not is_unwinding(place) and (missed := _missed(place)):
        raise _too_early(place, address, missed, is_answered=True)
    cut_off(place, address)


def entering(place: Place, address: str) -> None:
    """A call begins: was its task cancelled since its last call?"""
    if place.undoing:
        return  # In a task of its own.
    line, session = place.line, session_of(place)
    for limit in session.stops.limits:
        limit.note_struck()
    strikes, since = _strikes(), line.begun
    struck, line.struck = strikes > line.struck, strikes
    past = session.replay.matcher.past(address)
    if past is not None:
        line.begun = strikes
    cut = session.replay.matcher.cuts.get(address)
    if cut is not None and cut.before:
        session.backlog.met.add(address)
    elif not struck:
        return
    if line.leaving is not None or is_unwinding(place):
        return
    if cut is not None and cut.before and strikes <= since and not _is_being_cancelled():
        raise _not_again(place, address, f"was cancelled before it came to {address}")
    if struck and (missed := _missed(place, None if past is None else past.first)):
        raise _too_early(place, address, missed)
    if struck and past is not None and cut is None:
        raise _stopped(
            place, address, "not cancelled",
            f"run {session.run}, {address}: the code was cancelled before it came to this call (by a time-out, a failing "
            "sibling, task.cancel()). When the call was recorded nothing had cancelled it, so that the code may go another "
            "way now. Nothing was executed.",
        )  # fmt: skip
    if struck and past is None and cut is None and not session.dry:
        session.journal.lazily(CallCancelled(address, _seconds(session), before=True))


async def awaited(place: Place, address: str) -> None:
    """Wait for the recorded cancellation that struck before this call. A new call does not begin."""
    if (cut := to_strike(place, address)) is not None:
        await _awaited(place, cut, f"was cancelled before it came to {cut.address}, and now asks for {address}")


def to_strike(place: Place, address: str) -> CallCancelled | None:
    """The cancellation on record, if this call is new or came after it, and it has not struck this time."""
    line = place.line
    session = session_of(place)
    cuts = session.replay.matcher.cuts
    if not cuts or place.undoing or line.leaving is not None:
        return None
    if _strikes() > line.begun or _is_being_cancelled():
        return None  # It has struck; code that has changed may ask for something new on the way.
    past = session.replay.matcher.past(address)
    for cut in cuts.values():
        if not cut.before or cut.address == address or cut.address in session.backlog.met:
            continue
        if (past is None or past.first > session.state.cut_at[cut.address]) and _is_here(place, cut.address):
            return cut
    return None


def dealt_with(place: Place) -> None:
    """The cancellation of this line has a record of its own."""
    place.line.struck = _strikes()


async def again(place: Place, address: str, cut: CallCancelled) -> None:
    """This call was cut off before. Wait for the same cancellation."""
    session = session_of(place)
    past = session.replay.matcher.past(address)
    if past is not None:
        session.replay.matcher.asked.add(address)
        if isinstance(past, PastEffect):
            session.losses.asked_keys.add(past.key)
    try:
        await _awaited(place, cut, "was cancelled here")
    finally:
        place.line.struck = _strikes()


async def _awaited(place: Place, cut: CallCancelled, what: str) -> None:
    from surefoot.engine.drive import acts_async

    session = session_of(place)
    session.stops.meet_cancel(place, None)
    if session.dry and not timeouts.pending(place):
        session.backlog.is_cut_short = True
        raise PlanSignal
    wait = max(0.0, cut.seconds - turns.elapsed_seconds(session)) + SLACK_SECONDS
    await acts_async.stay(session, after(session.now(), wait))
    raise _not_again(place, cut.address, what)


def is_unwinding(place: Place) -> bool:
    """Whether the run ends here for now: then this is the reason for cancellations."""
    session = session_of(place)
    if session.dry and (session.stops.planned or session.stops.found or session.backlog.is_cut_short):
        return True
    if session.stops.is_cut_off or session.flight.ended or session.stops.is_given_up():
        return True
    if session.state.cancel is not None or session.stops.handed_back or session.stops.continuation is not None:
        return True
    return any(at.stop is not None for at in place.around())


def _strikes() -> int:
    """How often the current task was cancelled; for the user's own tasks, without those that were dealt with."""
    task = sys.modules["asyncio"].current_task()
    return 0 if task is None else int(getattr(task, "strikes", None) or task.cancelling())


def _is_being_cancelled() -> bool:
    task = sys.modules["asyncio"].current_task()
    return task is not None and task.cancelling() > 0


def _seconds(session: Session) -> float:
    return round(turns.elapsed_seconds(session), 3)


def _missed(place: Place, seq: int | None = None) -> list[Past]:
    """Recorded calls of this line of control, before that entry, that were not asked for."""
    return [past for past in session_of(place).backlog.before(seq) if _is_here(place, past.address)]


def _is_here(place: Place, address: str) -> bool:
    return address.startswith(place.scope.path) and not turns.is_elsewhere(place, address)


def _not_again(place: Place, address: str, what: str) -> StopSignal:
    message = (
        f"run {place.session.run}, {address}: the code {what} (by a time-out, a failing sibling, task.cancel()). This time "
        "nothing cancelled it in as long a time, so that nobody knows how the run goes on. Nothing was executed."
    )
    return _stopped(place, address, "cancelled", message)


def _too_early(place: Place, address: str, missed: list[Past], *, is_answered: bool = False) -> StopSignal:
    names = names_of(missed)
    asked = f"and asks for {address}, but has not asked for {names}, which came before that. {address} does not begin."
    cut = f"in {address}, which was answered before, so that it cannot come to {names}. Nothing was executed."
    message = (
        f"run {place.session.run}: the code was cancelled earlier than before (by a time-out, a failing sibling, "
        f"task.cancel()) {cut if is_answered else asked}"
    )
    return _stopped(place, address, names, message, asked=address)


def _stopped(place: Place, address: str, recorded: str, message: str, **facts: str) -> StopSignal:
    cures: Cures = (
        Advice("once more:", "run it again, with what cancels it as it did before"),
        Advice("in new runs:", "async with sf.timeout(...), or sf.gather(...): how they end is recorded"),
        Advice("in this run:", 'keep the old way: if sf.patched("…"): … else: …'),
        command("runs cancel", place.session.run, when="give up:"),
    )
    stop = Stop("CodeChanged", message, address, {"recorded": recorded, **facts}, cures)
    return place.session.stops.stopped(place, stop)
