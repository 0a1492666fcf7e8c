"""How each wish is performed in tasks (`perform_async.py`). Its twin for blocking code is `acts.py`.

Stores block, so commits go to the committer's writer thread. The tasks of one turn of the loop hand their entries over
together, and one wake-up reports to all of them that the entries are durable. The future they wait on cannot be
cancelled: an append always completes before a cancellation is delivered.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

from surefoot.core.claim import Claimed, Refusal
from surefoot.core.command import Outcome, Returned
from surefoot.core.entry import Due, RunCreated
from surefoot.core.timer import remaining
from surefoot.core.verdict import Unknown, Verdict
from surefoot.engine.declare import current
from surefoot.engine.declare.current import Place, session_of
from surefoot.engine.drive import acts, timeouts
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.session import late
from surefoot.engine.session.attempt import Attempt
from surefoot.engine.session.session import Session
from surefoot.errors import SurefootError

T = TypeVar("T")


class CancelledAgain(asyncio.CancelledError):
    """Replayed: this part of the run was cancelled here before."""


class WorkflowTask(asyncio.Task[T]):
    """The task of a workflow. It counts its cancellations, including those that the code has dealt with."""

    strikes = 0

    def cancel(self, msg: Any = None) -> bool:
        self.strikes += 1
        return super().cancel(msg)


LOOK_SECONDS = 0.01
LAST_SECONDS = 1.0
"""How long an effect whose time is over may take to end after it is cancelled."""


async def to_the_end(
    body: Coroutine[Any, Any, T] | asyncio.Task[T],
    on_cancel: Callable[[asyncio.Task[T], asyncio.CancelledError], None] | None = None,
) -> tuple[T, asyncio.CancelledError | None]:
    """Await this even if we are cancelled meanwhile. Returns the result, and the cancellation to pass on."""
    task = body if isinstance(body, asyncio.Task) else asyncio.get_running_loop().create_task(body)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            if on_cancel is not None:
                on_cancel(task, error)
    return task.result(), cancelled


async def look(attempt: Attempt) -> Verdict:
    """Call the check, blocking or not. A check that raises is unknown."""
    check = attempt.require_check()
    if (busy := attempt.busy()) is not None:
        return busy
    token = current.set_place(attempt.looking())
    try:
        args, kwargs = attempt.spec.binder.ordered(*attempt.own())
        returned = check(*args, **kwargs)
        if inspect.isawaitable(returned):
            returned = await returned
    except Exception as error:  # noqa: BLE001 - whatever user code raises tells nothing
        returned = Unknown(f"it raised {type(error).__name__}: {error}")
    finally:
        current.reset(token)
    return attempt.judged(returned)


async def execute(attempt: Attempt, number: int) -> tuple[Outcome, asyncio.CancelledError | None]:
    """How the call ended; for an effect, also the cancellation that struck meanwhile and has to be passed on."""
    if attempt.lapsed():
        await hop(attempt.session.claim.regain)
    place = attempt.enter(number)
    started = attempt.session.clock.now()
    token = current.set_place(place)
    try:
        args, kwargs = attempt.own()
        body = attempt.spec.fn(*args, **kwargs)
        if attempt.spec.kind == "effect":
            return await shielded(attempt, body, started)
        if attempt.spec.timeout is None:
            value = await body
        else:
            async with asyncio.timeout(attempt.spec.timeout):
                value = await body
    except Exception as error:  # noqa: BLE001 - whatever user code raises is the outcome
        return attempt.raised(error, started), None
    finally:
        current.reset(token)
    return attempt.returned(value, started), None


async def shielded(
    attempt: Attempt, body: Coroutine[Any, Any, Any], started: int
) -> tuple[Outcome, asyncio.CancelledError | None]:
    """Await an effect to its end even if its caller is cancelled meanwhile: its outcome has to be recorded."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(body)
    timeout, number = attempt.spec.timeout, attempt.inside.attempt
    deadline = None if timeout is None else loop.time() + timeout
    cancelled: asyncio.CancelledError | None = None
    late = False
    while not task.done():
        left = None if deadline is None else deadline - loop.time()
        if left is not None and left <= 0:
            if late:
                attempt.abandon(lambda: not task.done())
                task.add_done_callback(
                    lambda done: attempt.landed(number, None if done.cancelled() else done.exception())
                )
                break  # It was cancelled and did not end: in doubt, and its late result is dropped.
            late = True
            task.cancel()
            deadline, left = loop.time() + LAST_SECONDS, LAST_SECONDS
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
    return _outcome(attempt, task, started, late=late), cancelled


def _outcome(attempt: Attempt, task: asyncio.Task[Any], started: int, *, late: bool) -> Outcome:
    if late and (not task.done() or task.cancelled() or task.exception() is not None):
        return attempt.raised(TimeoutError(f"did not return within {attempt.spec.timeout:g} s"), started)
    if task.cancelled():
        return attempt.raised(asyncio.CancelledError("the effect was cancelled from inside"), started)
    error = task.exception()
    return attempt.returned(task.result(), started) if error is None else attempt.raised(error, started)


async def go_live(session: Session) -> None:
    """Claim the run, under the same lock as blocking calls of it. A cancellation does not interrupt this."""
    if session.claim.live:
        return
    _, cancelled = await to_the_end(hop(acts.go_live, session))
    if cancelled is not None:
        raise cancelled


async def claim(session: Session, created: RunCreated | None = None) -> Claimed | Refusal:
    """Take the run over, or create it."""
    ticket, turn = session.claim.ticket(created), turn_of(session.runtime)
    ticket.notify = turn.join()
    session.runtime.committer.add(ticket)
    try:
        await turn.future
    finally:
        if ticket.is_durable:
            session.claimed()  # Also during a cancellation: the claim is durable and has to be released.
        elif ticket.error is not None:
            raise session.stops.store_failed(ticket.error) from None
    return ticket.refused or Claimed()


async def append(session: Session, *entries: Any) -> None:
    turn = turn_of(session.runtime)
    done = turn.join()
    try:
        ticket = session.journal.add(*entries, notify=done)
    except BaseException as error:
        done()  # Else all others in this turn would wait for a ticket that does not exist.
        if isinstance(error, SurefootError):
            raise await _refused(session, entries, error) from None
        raise
    try:
        await turn.future
    finally:
        if ticket.done and not ticket.is_durable:
            unwritten = tuple(packed[0] for packed in ticket.entries)
            raise await _refused(session, unwritten, ticket.trouble()) from None


async def _refused(session: Session, entries: tuple[Any, ...], error: SurefootError) -> SurefootError:
    if late.matters(session, entries, error):
        await hop(late.refused, session, entries, error)
    return session.stops.store_failed(error)


async def pause(place: Place, due: Due, is_over: Callable[[], bool] = bool) -> None:
    session = session_of(place)
    if session.stops.limits:
        await timeouts.held(place)
    if session.stops.outlasts(wake := timeouts.earliest(place, due)):
        raise session.stops.suspended(place, wake)
    await stay(session, due, is_over)


async def stay(session: Session, due: Due, is_over: Callable[[], bool] = bool) -> None:
    """Wait in the process, however long it takes."""
    while (left := remaining(due, session.now())) > 0 and not is_over():
        await asyncio.sleep(session.clock.nap(left))
        await hop(acts.notice, session)


async def invoke(session: Session, fn: Callable[[], Awaitable[Any]]) -> Returned | BaseException:
    """Run the workflow function itself, at the root of a run, in a task of its own.

    So it is known what is cancelled. A part of the run, from inside (a time-out, a failing sibling): that is a failure
    of the part. Or the caller that waits for the run (the end of the loop, a time-out around it): then the run is
    released for now. The caller gets its own cancellation back, and not that of our task: anyio and `asyncio.timeout`
    need that one.
    """
    outer = asyncio.current_task()
    if outer is None:
        raise AssertionError(session.run)
    before = outer.cancelling()
    session.stops.is_given_up = lambda: outer.cancelling() > before
    session.flight.invoked = asyncio.get_running_loop().time()
    if not session.replay.matcher.is_blank:  # Only a resume uses them. Many runs at once are many tasks for each.
        session.flight.tasks_before = WeakSet(asyncio.all_tasks())
    missed = False

    def pass_on(inner: asyncio.Task[Any], error: asyncio.CancelledError) -> None:
        nonlocal missed
        missed = not inner.cancel(*error.args)

    outcome, cancelled = await to_the_end(WorkflowTask(_invoked(session, fn)), pass_on)
    return outcome if cancelled is None else _given_up(session, outer, outcome, cancelled, missed=missed)


def _given_up(
    session: Session, outer: asyncio.Task[Any], outcome: Returned | BaseException, cancelled: asyncio.CancelledError, *,
    missed: bool,
) -> Returned | BaseException:  # fmt: skip
    """What the caller that was cancelled gets. `missed`: the code had ended already."""
    if missed:  # So the cancellation has to strike here.
        outer.uncancel()
        outer.cancel(*cancelled.args)
    session.stops.given_up_by(cancelled)
    return cancelled if isinstance(outcome, asyncio.CancelledError) else outcome


async def invoke_dormant(
    wake: Callable[[], Session],
    fn: Callable[[], Awaitable[Any]],
    ended: Callable[[Session, Any, BaseException | None], Returned | BaseException],
) -> tuple[Session | None, Any]:
    """Run a unit that may make no call, in a task of its own as `invoke` does. Without a call: what it returned or raised.
    Else its session, and what `ended` makes of its end.
    """
    outer = asyncio.current_task()
    if outer is None:
        raise AssertionError(fn)
    before, begun = outer.cancelling(), asyncio.get_running_loop().time()
    missed = False

    def woken() -> Session:
        session = wake()
        session.stops.is_given_up = lambda: outer.cancelling() > before
        session.flight.invoked = begun
        return session

    def pass_on(inner: asyncio.Task[Any], error: asyncio.CancelledError) -> None:
        nonlocal missed
        missed = not inner.cancel(*error.args)

    found, cancelled = await to_the_end(WorkflowTask(_dormant(woken, fn, ended)), pass_on)
    session, outcome = found
    if cancelled is not None and session is None:
        raise cancelled
    if cancelled is not None and session is not None:
        outcome = _given_up(session, outer, outcome, cancelled, missed=missed)
    return session, outcome


async def _dormant(
    wake: Callable[[], Session],
    fn: Callable[[], Awaitable[Any]],
    ended: Callable[[Session, Any, BaseException | None], Returned | BaseException],
) -> tuple[Session | None, Any]:
    place = current.Dormant(wake, asyncio.current_task())
    token = current.set_place(place)
    value: Any = None
    error: BaseException | None = None
    try:
        with current.driven:
            value = await fn()
    except BaseException as raised:
        if place.awake is None:
            raise
        error = raised
    try:
        if place.awake is None:
            return None, value
        session = session_of(place)
        outcome = ended(session, value, error)
    finally:
        current.reset(token)
    session.flight.function_ended()
    return session, await _effects_ended(session) or outcome


async def _invoked(session: Session, fn: Callable[[], Awaitable[Any]]) -> Returned | BaseException:
    token = current.set_place(session.root_place(asyncio.current_task()))
    outcome: Returned | BaseException
    try:
        with current.driven:
            outcome = session.result(await fn())
    except BaseException as error:  # noqa: BLE001 - what it means is decided by `conclusion.conclude`
        outcome = error
    finally:
        current.reset(token)
    session.flight.function_ended()
    return await _effects_ended(session) or outcome


async def _effects_ended(session: Session) -> asyncio.CancelledError | None:
    """Effects in tasks that no code waits for any more: their outcome is recorded before the run is released."""
    cancelled = None
    while session.flight.has_effects:
        try:
            await asyncio.sleep(LOOK_SECONDS)
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


# -- the way to the writer thread and back --------------------------------------------------------


class _Durable(asyncio.Future[None]):
    """Cannot be cancelled: one task's cancellation must not cut off the others in the turn."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class _Turn:
    """The shared wait of the tasks of one turn of one loop: one wake-up for all of their tickets."""

    __slots__ = ("_closed", "_lock", "_loop", "_missing", "_number", "future")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future = _Durable(loop=loop)
        self._loop = loop
        self._lock = threading.Lock()
        self._missing: set[int] = set()
        self._number = 0
        self._closed = False

    def join(self) -> Callable[[], None]:
        """Adds a ticket. The returned function reports it as done; the thread that commits calls it."""
        with self._lock:
            self._number += 1
            self._missing.add(self._number)
        return partial(self._done, self._number)

    def _done(self, number: int) -> None:
        with self._lock:
            self._missing.discard(number)
            ready = self._closed and not self._missing
        if ready:
            self._wake()

    def close(self) -> None:
        """The turn is over: no ticket joins any more. Only now may the last one done wake the tasks."""
        with self._lock:
            self._closed = True
            ready = not self._missing
        if ready:
            self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # The loop is closed: no task is waiting.
            self._loop.call_soon_threadsafe(_finish, self.future)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def turn_of(runtime: Runtime) -> _Turn:
    """Join the current turn of the running loop. At its end, what the turn has queued is committed."""
    loop = asyncio.get_running_loop()
    turn: _Turn | None = runtime.turns.get(loop)
    if turn is None:
        turn = runtime.turns[loop] = _Turn(loop)
        loop.call_soon(_end_turn, runtime, loop)
    return turn


def _end_turn(runtime: Runtime, loop: asyncio.AbstractEventLoop) -> None:
    turn: _Turn = runtime.turns.pop(loop)
    runtime.committer.kick()
    turn.close()


CROWD, LEAST_BEGIN = 200, 50
"""Runs begin at once until `CROWD` runs are in progress; then `LEAST_BEGIN` may begin in each turn of the loop."""


class _Door:
    """Where runs wait to begin. A waiting run takes a tenth of the memory of a run in progress."""

    __slots__ = ("room", "waiting")

    def __init__(self) -> None:
        self.room = 0
        """How many more may begin in this turn."""
        self.waiting: deque[asyncio.Future[None]] = deque()


async def admitted(runtime: Runtime) -> None:
    """Wait until this run may begin. Each turn lets some in, so runs that wait for each other block no others."""
    loop = asyncio.get_running_loop()
    door: _Door | None = runtime.doors.get(loop)
    if door is None:
        door = runtime.doors[loop] = _Door()
        _open(runtime, door)
    if door.room > 0:
        door.room -= 1
        return
    waiting = loop.create_future()
    door.waiting.append(waiting)
    await waiting


def _open(runtime: Runtime, door: _Door) -> None:
    """Opens the door for one turn: until the entries of the turn are durable."""
    door.room = max(LEAST_BEGIN, CROWD - len(runtime.driven()))
    while door.waiting and door.room > 0:
        waiting = door.waiting.popleft()
        if not waiting.done():  # Else the task that waited was cancelled.
            door.room -= 1
            waiting.set_result(None)
    # After those runs: they write in this turn too, if it is a new one.
    turn_of(runtime).future.add_done_callback(partial(_turned, runtime))


def _turned(runtime: Runtime, turn: asyncio.Future[None]) -> None:
    door: _Door = runtime.doors[turn.get_loop()]
    if door.waiting:
        _open(runtime, door)
    else:
        del runtime.doors[turn.get_loop()]


def in_a_thread(body: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine in a loop and a thread of its own: the caller blocks, and may be inside a loop already."""
    box: Future[T] = Future()
    acts.in_a_thread(box, lambda: asyncio.run(body), "surefoot-own-loop")
    return box.result()


_io: ThreadPoolExecutor | None = None


def _in_child() -> None:
    global _io  # noqa: PLW0603 - its threads are the parent's: in a forked child nobody would ever answer
    _io = None


os.register_at_fork(after_in_child=_in_child)


async def hop(fn: Callable[..., T], *args: Any) -> T:
    """Blocking I/O of our own, in threads that no user code can fill."""
    global _io  # noqa: PLW0603 - made at first use, so that importing starts no thread
    if _io is None:
        _io = ThreadPoolExecutor(max_workers=4, thread_name_prefix="surefoot-io")
    return await asyncio.get_running_loop().run_in_executor(_io, fn, *args)
