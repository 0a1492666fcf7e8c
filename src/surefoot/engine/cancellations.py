"""Parts of a run that are cancelled from inside: by `asyncio.timeout`, a failing sibling, `task.cancel()`.

When the code is replayed, that need not strike again, or not there: what was slow is answered at once. So a call that
was cut off is recorded (`CallCancelled`). On replay it is not made again; it waits for what cancelled it before, as long as
that took the first time and a second more, and then stops: nobody knows how the code would go on.

A cancellation may also strike between two calls, in an await that is none of ours. Then the next call notes it. On
replay the code has to come to that call in the same way, and one that was cancelled earlier than before, so that
recorded calls of its line are not asked for, begins nothing new.

Whoever waits for the run may be cancelled too; that gives the run up for now and is no part of it.
"""

from __future__ import annotations

import logging
import shlex
import sys
from typing import TYPE_CHECKING, Any, Final

from surefoot.core.entry import CallCancelled, Stop
from surefoot.core.history import Past
from surefoot.core.timer import after
from surefoot.engine import limits, replaying
from surefoot.engine.current import Place
from surefoot.engine.signals import PlanSignal

if TYPE_CHECKING:
    from surefoot.engine.session import Session

SLACK_SECONDS: Final = replaying.SLACK_SECONDS
log = logging.getLogger("surefoot")


def recorded(place: Place, address: str) -> CallCancelled | None:
    """That this very call was cut off, on record."""
    cut = place.session.state.cuts.get(address)
    return None if cut is None or cut.before else cut


def cut_off(place: Place, address: str) -> None:
    """A call is left by a cancellation. Durable no later than anything that comes of it."""
    place.line.struck = _strikes()
    session = place.session
    if not session.dry and address not in session.state.cuts and not is_unwinding(place):
        session.journal.lazily(CallCancelled(address, _seconds(session)))
    for limit in session.limits:
        limit.note_struck()


def entering(place: Place, address: str) -> None:
    """A call begins: was its task cancelled since its last call?"""
    if place.undoing:
        return  # In a task of its own.
    line, session = place.line, place.session
    for limit in session.limits:
        limit.note_struck()
    strikes = _strikes()
    struck, line.struck = strikes > line.struck, strikes
    cut = session.state.cuts.get(address)
    if not struck and (cut is None or not cut.before):
        return
    if line.leaving is not None or is_unwinding(place):
        return
    if cut is not None and cut.before and not strikes:
        raise session.stopped(place, _not_again(session, address, f"was cancelled before it came to {address}"))
    if not struck or address in session.state.calls or cut is not None:
        return
    missed = [past for past in session.backlog.before(None) if _is_own(place, past)]
    if missed:
        raise session.stopped(place, _too_early(session, address, missed))
    if not session.dry:
        session.journal.lazily(CallCancelled(address, _seconds(session), before=True))


async def again(place: Place, address: str, cut: CallCancelled) -> None:
    """This call was cut off before. Wait for the same."""
    from surefoot.engine import drive_async

    session: Session = place.session
    past = session.state.calls.get(address)
    if past is not None:
        session.matcher.asked.add(address)
        session.asked_keys.add(past.key)
    session.meet_cancel(place, None)
    if session.dry and not limits.pending(place):
        raise PlanSignal
    wait = max(0.0, cut.seconds - replaying.elapsed_seconds(session)) + SLACK_SECONDS
    try:
        await drive_async.stay(session, after(session.now(), wait))
    finally:
        place.line.struck = _strikes()
    raise session.stopped(place, _not_again(session, address, "was cancelled here"))


def is_unwinding(place: Place) -> bool:
    """Whether the run ends here for now, so that what is cancelled is cancelled for that."""
    session = place.session
    if session.trouble is not None or session.interruption is not None or session.ended or session.is_given_up():
        return True
    if session.state.cancel is not None or session.handed_back or session.continuation is not None:
        return True
    at: Place | None = place
    while at is not None and at.stop is None:
        at = at.parent
    return at is not None


def _strikes() -> int:
    """How often the task that runs here was cancelled, and nobody has said yet that this is dealt with."""
    task = sys.modules["asyncio"].current_task()
    return 0 if task is None else int(task.cancelling())


def _seconds(session: Any) -> float:
    return round(replaying.elapsed_seconds(session), 3)


def _is_own(place: Place, past: Past) -> bool:
    return past.address.startswith(place.scope.path) and not replaying.is_elsewhere(place, past.address)


def _not_again(session: Any, address: str, what: str) -> Stop:
    message = (
        f"run {session.run}, {address}: the code {what} (by a time-out, a failing sibling, task.cancel()). This time "
        "nothing cancelled it in as long a time, so that nobody knows how the run goes on. Nothing was executed."
    )
    return Stop("CodeChanged", message, address, {"recorded": "cancelled"}, _cures(session.run))


def _too_early(session: Any, address: str, missed: list[Past]) -> Stop:
    names = ", ".join(past.address for past in missed[:5]) + (" …" if len(missed) > 5 else "")
    message = (
        f"run {session.run}: the code was cancelled earlier than before (by a time-out, a failing sibling, "
        f"task.cancel()) and asks for {address}, but has not asked for {names}, which came before that. "
        f"{address} does not begin."
    )
    return Stop("CodeChanged", message, address, {"recorded": names, "asked": address}, _cures(session.run))


def _cures(run: str) -> tuple[tuple[str, str], ...]:
    return (
        ("once more:", "run it again, with what cancels it as it did before"),
        ("from now on:", "async with sf.timeout(...), or sf.gather(...): how they end is recorded"),
        ("give up:", f"surefoot runs cancel {shlex.quote(run)}"),
    )
