"""How each wish is performed in blocking code (`perform.py`). Its twin for tasks is `acts_async.py`."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from surefoot.core.claim import Claimed, Refusal
from surefoot.core.command import Outcome, Returned
from surefoot.core.entry import Due, RunCreated
from surefoot.core.timer import after, remaining
from surefoot.core.verdict import Unknown, Verdict
from surefoot.engine.declare import current
from surefoot.engine.declare.current import Place, session_of
from surefoot.engine.declare.signals import CancelSignal
from surefoot.engine.session import late
from surefoot.engine.session.attempt import Attempt
from surefoot.engine.session.session import Session
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


def execute(attempt: Attempt, number: int) -> Outcome:
    if attempt.lapsed():
        attempt.session.claim.regain()
    place = attempt.enter(number)
    started = attempt.session.clock.now()
    token = current.set_place(place)
    try:
        args, kwargs = attempt.own()
        timed = attempt.spec.timeout is not None
        value = in_time(attempt, args, kwargs) if timed else attempt.spec.fn(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - whatever user code raises is the outcome
        return attempt.raised(error, started)
    finally:
        current.reset(token)
    return attempt.returned(value, started)


def look(attempt: Attempt) -> Verdict:
    """Call the check. A check that raises is unknown."""
    check = attempt.require_check()
    if (busy := attempt.busy()) is not None:
        return busy
    token = current.set_place(attempt.looking())
    try:
        args, kwargs = attempt.spec.binder.ordered(*attempt.own())
        returned = check(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - whatever user code raises tells nothing
        returned = Unknown(f"it raised {type(error).__name__}: {error}")
    finally:
        current.reset(token)
    return attempt.judged(returned)


def in_time(attempt: Attempt, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run in a thread. After the time-out its late result is dropped."""
    from concurrent.futures import Future

    box: Future[Any] = Future()
    seconds, number = attempt.spec.timeout or 0.0, attempt.inside.attempt
    try:
        in_a_thread(box, lambda: attempt.spec.fn(*args, **kwargs), "surefoot-timed")
        with suppress(TimeoutError):
            box.exception(seconds)
    finally:
        if not (is_done := box.done()):  # Ctrl-C too ends only the waiting, not the thread.
            attempt.abandon(box.running)
            box.add_done_callback(lambda ended: attempt.landed(number, ended.exception()))
    if not is_done:
        raise TimeoutError(f"did not return within {seconds:g} s")
    if (error := box.exception()) is not None:
        raise error
    return box.result()


def in_a_thread(box: Future[T], work: Callable[[], T], name: str) -> None:
    """Run it in a daemon thread with a copied context. The box gets the result or the exception.

    From here on it counts as running: a started thread may begin its work at any moment.
    """

    def run() -> None:
        try:
            box.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread as it is
            box.set_exception(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), name=name, daemon=True)
    box.set_running_or_notify_cancel()
    try:
        thread.start()
    except RuntimeError as error:  # There is no thread: the system is out of threads.
        box.set_exception(error)


def append(session: Session, *entries: Any) -> None:
    try:
        session.journal.append(*entries)
    except SurefootError as error:
        late.refused(session, entries, error)
        raise session.stops.store_failed(error) from None


def go_live(session: Session) -> None:
    """Claim the run: effects may happen from here on."""
    with session.claim.lock:
        session.claim.prepare()
        refused = None if session.claim.live else session.stops.lost or claim(session)
    if not (refused is None or isinstance(refused, Claimed)):
        raise session.claim.refused(refused)


def write_down(place: Place | None) -> None:
    """Lazy notes of a run (a random id, the time) are on disk before another run is named after them, or gets them."""
    if place is None or place is current.OUTSIDE or place.session.dry or not session_of(place).journal.owes:
        return
    go_live(session_of(place))
    session_of(place).journal.flush(place.session.clock.now())


def claim(session: Session, created: RunCreated | None = None) -> Claimed | Refusal:
    """Take the run over, or create it."""
    ticket = session.claim.ticket(created)
    try:
        return session.journal.commit(ticket) or Claimed()
    except SurefootError as error:
        raise session.stops.store_failed(error) from None
    finally:
        if ticket.is_durable:
            session.claimed()  # Also during an interruption: the claim is durable and has to be released.


def nap(seconds: float) -> None:
    threading.Event().wait(seconds)


def moment(session: Session, seconds: float, *, jitter: bool) -> Due:
    if jitter:
        seconds *= 0.5 + session.clock.random() / 2
    return after(session.now(), seconds)


def pause(place: Place, due: Due, is_over: Callable[[], bool] = bool) -> None:
    """Sleep in the process, until `due` or until `is_over` finds nothing left to wait for. A cancellation is noticed
    too.

    A worker does not sleep long: it releases the run.
    """
    session = session_of(place)
    if session.stops.outlasts(due):
        raise session.stops.suspended(place, due)
    nap = threading.Event()
    while (left := remaining(due, session.now())) > 0 and not is_over():
        nap.wait(session.clock.nap(left))
        notice(session)


def notice(session: Session) -> None:
    """Read the entries of visitors, if there are new ones."""
    changes = session.runtime.store.changes()
    if changes != session.seen_changes:
        session.seen_changes = changes
        try:
            refused = session.journal.look()
        except SurefootError as error:
            raise session.stops.store_failed(error) from None
        if refused is not None:
            raise session.claim.refused(refused)
    session.stops.check_trouble()
    if session.state.cancel is not None and not session.stops.undoing:
        raise CancelSignal
    if session.stops.handed_back:
        raise session.stops.handing_back()


def invoke(session: Session, fn: Callable[[], Any]) -> Returned | BaseException:
    """Run the workflow function itself, at the root of a run."""
    place = session.root_place(threading.get_ident())
    token = current.set_place(place)
    try:
        with current.driven:
            return session.result(fn())
    except BaseException as error:  # noqa: BLE001 - what it means is decided by `conclusion.conclude`
        return error
    finally:
        session.flight.function_ended()
        current.reset(token)
