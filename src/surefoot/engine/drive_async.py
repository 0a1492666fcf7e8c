"""Performs wishes in tasks. Its twin for blocking code is `drive.py`; neither decides anything.

Stores block, so commits go to the committer's writer thread: what the tasks of one turn of the loop
have to write goes over together and comes back with one wake-up. The future they wait on cannot be
cancelled: an append always completes before a cancellation is delivered.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, assert_never
from weakref import WeakSet

from surefoot.core.claim import Claimed, Refusal
from surefoot.core.command import (
    After,
    Append,
    Ending,
    Execute,
    Hold,
    Left,
    Look,
    Observe,
    Outcome,
    Pause,
    Repair,
    Returned,
    Trace,
    Verify,
)
from surefoot.core.entry import CallCancelled, Due, RunCreated, Stop, WorldSeen
from surefoot.core.timer import remaining
from surefoot.core.verdict import Unknown, Verdict
from surefoot.engine import cancellations, current, drive, late, limits, replaying
from surefoot.engine.attempt import Attempt, recorded_ending
from surefoot.engine.current import Place
from surefoot.engine.deeds import note
from surefoot.engine.runtime import Runtime
from surefoot.engine.session import Session
from surefoot.engine.signals import PlanSignal
from surefoot.engine.spec import CallSpec
from surefoot.errors import SurefootError, UsageError

T = TypeVar("T")


class CancelledAgain(asyncio.CancelledError):
    """Replayed: this part of the run was cancelled here before."""


class WorkflowTask(asyncio.Task[T]):
    """The one that a workflow runs in. It knows how often it was cancelled, also when that has been dealt with."""

    strikes = 0

    def cancel(self, msg: Any = None) -> bool:
        self.strikes += 1
        return super().cancel(msg)


LOOK_SECONDS = 0.01
LAST_SECONDS = 1.0
"""How long an effect that has used up its time may take to end when it is cancelled."""


async def call(spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A decorated coroutine function is awaited."""
    place = current.get()
    if place is None:
        return await spec.stray(args, kwargs)
    if place is current.OUTSIDE or place.inside is not None:
        return await spec.nested(place, args, kwargs)
    session = place.session
    if isinstance(place.owner, int):
        raise session.misused(
            UsageError(
                f"run {session.run}: async {spec.kind} {spec.name} inside a blocking workflow. "
                "Make the workflow `async def` and await the call, or make the call blocking."
            )
        )
    session.enter_verb(place)
    coming = place.scope.coming(spec.name)
    cancellations.entering(place, coming)
    if (cut := cancellations.recorded(place, coming)) is not None and _is_there(place, spec, args, kwargs, cut):
        place.scope.take(spec.name)
        await _again(place, spec, args, kwargs, cut)
    if (cut := cancellations.to_strike(place, coming)) is not None:
        await cancellations.awaited(place, coming, cut)
    if session.limits:
        await held(place, spec.name, coming)
    is_new = not session.matcher.is_blank and session.matcher.past(coming) is None
    if session.has_strays and spec.kind == "effect" and is_new:
        await replaying.heard_out(place, coming)
    try:
        begun = session.begin(place, spec, args, kwargs)
    except PlanSignal:
        await replaying.others_heard(session)
        raise
    address = place.called
    if address != coming and (cut := cancellations.recorded(place, address)) is not None:
        await _again(place, spec, args, kwargs, cut)  # It is on record under another name.
    asked = None
    if type(begun) is Attempt:
        attempt, args, kwargs, asked = begun, begun.args, begun.kwargs, begun.call
        try:
            begun = await run_attempt(attempt)
            if not session.matcher.is_blank:
                await replaying.in_turn(place, address, on_record=False)
        except asyncio.CancelledError:
            session.cut_short(attempt)
            cancellations.cut_off(place, address)
            raise
    else:
        try:
            await replaying.in_turn(place, address, on_record=True)
        except asyncio.CancelledError:
            cancellations.cut_off_in_turn(place, address)
            raise
    note(place, spec, args, kwargs, begun, asked)
    return session.finish(place, begun)


async def held(place: Place, name: str, address: str) -> None:
    """In a block whose time is over. What is on record, and has not ended, is cut off here as if it had been begun.

    `name`: whose number it takes then; empty: it has taken it already.
    """
    past = limits.on_record(place, address)
    try:
        await limits.held(place, address)
    except asyncio.CancelledError:
        if past is not None:
            if name:
                place.scope.take(name)
            cancellations.cut_off(place, address)
        raise


def _is_there(place: Place, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any], cut: CallCancelled) -> bool:
    past = place.session.matcher.past(cut.address)
    return past is None or place.session.is_cut_off_there(place, past, spec, args, kwargs)


async def _again(
    place: Place, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any], cut: CallCancelled
) -> None:
    """A call that was cut off before. If it was done all the same, a saga has to know."""
    session = place.session
    past = session.state.calls.get(cut.address)
    if past is not None and past.digest and past.kind == spec.kind:
        session.require_same(place, past, spec, args, kwargs)
    if past is not None and (ending := recorded_ending(past)) is not None:
        note(place, spec, args, kwargs, ending, None)
    await cancellations.again(place, cut.address, cut)


async def run_attempt(attempt: Attempt) -> Ending:
    session = attempt.session
    answer: Any = None
    executed = False
    cancelled: asyncio.CancelledError | None = None
    try:
        session.call_begins(attempt.call.address, attempt.spec.kind)
        if not session.live and not attempt.looks_first():
            await go_live(session)
            if (ending := attempt.settled_meanwhile()) is not None:
                return ending
        program = attempt.program
        while True:
            wish, answer = program.send(answer), None  # No `match`: it costs six times as much here.
            if session.stops and (ending := attempt.held_back(wish)) is not None:
                return ending
            if not session.live and attempt.needs_claim(wish):
                await go_live(session)
                if (ending := attempt.settled_meanwhile()) is not None:
                    return ending
                if attempt.program is not program:
                    program = attempt.program
                    continue
            if isinstance(wish, Execute):
                executed = True
                try:
                    answer = await execute(attempt, wish.attempt)
                except EffectCancelled as late:
                    cancelled, answer = late.cancelled, late.outcome
            elif isinstance(wish, Append):
                try:
                    await append(session, wish.entry)
                except asyncio.CancelledError as error:
                    # The entry is durable; what it belongs to is finished before we pass this on.
                    cancelled = error
            elif isinstance(wish, After):
                answer = drive.moment(session, wish.seconds, jitter=wish.jitter)
            elif isinstance(wish, Pause):
                if cancelled is not None:
                    # The failed attempt is on record; the next one is for the next resume.
                    raise cancelled  # noqa: TRY301 - handled below like any other cancellation
                session.say_why(wish)
                await pause(attempt.place, wish.due, attempt.is_settled)
                if (ending := attempt.settled_meanwhile()) is not None:
                    return ending
                program = attempt.program
            elif not executed:
                answer = await _look_around(attempt, wish)
            else:
                # The call has been made: how it ended is found out and recorded before a cancellation is passed on.
                answer, late_cancel = await to_the_end(_look_around(attempt, wish))
                cancelled = late_cancel or cancelled
    except StopIteration as end:
        attempt.ending = end.value
        if cancelled is not None:
            raise cancelled from None
        return end.value  # type: ignore[no-any-return]
    except asyncio.CancelledError:
        raise  # An ordinary event in async code: what was in flight is finished or was never begun.
    except BaseException as error:
        session.struck_by(error)
        raise
    finally:
        session.call_ended(attempt.call.address)
        session.made_at = asyncio.get_running_loop().time()


async def _look_around(attempt: Attempt, wish: Look | Trace | Repair | Observe | Hold | Left | Verify) -> Any:
    """What the world is like, before the call or after it."""
    if isinstance(wish, Look):
        return await look(attempt)
    if isinstance(wish, Trace):
        return await hop(attempt.trace)
    if isinstance(wish, Repair):
        begun = attempt.repair(wish.attempt)
        return await _repaired(begun) if isinstance(begun, Attempt) else begun
    if isinstance(wish, Observe):
        return await hop(attempt.sights)
    if isinstance(wish, Hold):
        return attempt.held(wish.sights)
    if isinstance(wish, Left):
        return await hop(attempt.left)
    if isinstance(wish, Verify):
        return await verify(attempt.session)
    assert_never(wish)


async def to_the_end(
    body: Coroutine[Any, Any, T] | asyncio.Task[T],
    on_cancel: Callable[[asyncio.Task[T], asyncio.CancelledError], None] | None = None,
) -> tuple[T, asyncio.CancelledError | None]:
    """Await this even if we are cancelled meanwhile; what it gave, and the cancellation that is yet to be passed on."""
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


async def _repaired(undo: Attempt) -> Ending:
    """The undo of an async effect may be a blocking function."""
    return await run_attempt(undo) if inspect.iscoroutinefunction(undo.spec.fn) else drive.drive(undo)


async def verify(session: Session) -> Stop | None:
    """Look at everything the run relies on again. The stop, if it is not as expected."""
    if session.dry or not session.watches:
        return None
    found = session.judge(await hop(session.look_at_world))
    if isinstance(found, WorldSeen):
        await go_live(session)
        await append(session, found)
        return None
    return found


async def look(attempt: Attempt) -> Verdict:
    """Call the check, blocking or not. One that raises could not tell."""
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


class EffectCancelled(BaseException):
    """An effect was cancelled while in flight; it was waited for, and this is its outcome."""

    def __init__(self, outcome: Outcome, cancelled: asyncio.CancelledError) -> None:
        super().__init__()
        self.outcome = outcome
        self.cancelled = cancelled


async def execute(attempt: Attempt, number: int) -> Outcome:
    if attempt.lapsed():
        await hop(attempt.session.regain)
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
        return attempt.raised(error)
    finally:
        current.reset(token)
    return attempt.returned(value, started)


async def shielded(attempt: Attempt, body: Coroutine[Any, Any, Any], started: int) -> Outcome:
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
                break  # It was asked to end and did not: in doubt, and its late result is dropped.
            late = True
            task.cancel()
            deadline, left = loop.time() + LAST_SECONDS, LAST_SECONDS
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
    outcome = _outcome(attempt, task, started, late=late)
    if cancelled is not None:
        raise EffectCancelled(outcome, cancelled)
    return outcome


def _outcome(attempt: Attempt, task: asyncio.Task[Any], started: int, *, late: bool) -> Outcome:
    if late and (not task.done() or task.cancelled() or task.exception() is not None):
        return attempt.raised(TimeoutError(f"did not return within {attempt.spec.timeout:g} s"))
    if task.cancelled():
        return attempt.raised(asyncio.CancelledError("the effect was cancelled from inside"))
    error = task.exception()
    return attempt.returned(task.result(), started) if error is None else attempt.raised(error)


async def go_live(session: Session) -> None:
    """Claim the run, under the same lock as blocking calls of it. Not cut short by a cancellation."""
    if session.live:
        return
    _, cancelled = await to_the_end(hop(drive.go_live, session))
    if cancelled is not None:
        raise cancelled


async def claim(session: Session, created: RunCreated | None = None) -> Claimed | Refusal:
    """Take the run over, or create it."""
    ticket, turn = session.claim(created), turn_of(session.runtime)
    ticket.notify = turn.join()
    session.runtime.committer.add(ticket)
    try:
        await turn.future
    finally:
        if ticket.is_durable:
            session.claimed()  # Also when we are being cancelled: the claim is durable and has to be released.
        elif ticket.error is not None:
            raise session.store_failed(ticket.error) from None
    return ticket.refused or Claimed()


async def append(session: Session, *entries: Any) -> None:
    turn = turn_of(session.runtime)
    done = turn.join()
    try:
        ticket = session.journal.add(*entries, notify=done)
    except BaseException as error:
        done()  # Else everybody else in this turn would wait for a ticket that does not exist.
        if isinstance(error, SurefootError):
            if late.matters(session, entries, error):
                await hop(late.refused, session, entries, error)
            raise session.store_failed(error) from None
        raise
    try:
        await turn.future
    finally:
        if ticket.done and (trouble := ticket.trouble) is not None:
            if late.matters(session, entries, trouble):
                await hop(late.refused, session, entries, trouble)
            raise session.store_failed(trouble) from None


async def pause(place: Place, due: Due, is_over: Callable[[], bool] = bool) -> None:
    session: Session = place.session
    if session.limits:
        await limits.held(place)
    if session.outlasts(wake := limits.earliest(place, due)):
        raise session.suspended(place, wake)
    await stay(session, due, is_over)


async def stay(session: Session, due: Due, is_over: Callable[[], bool] = bool) -> None:
    """Wait in the process, however long it takes."""
    while (left := remaining(due, session.now())) > 0 and not is_over():
        await asyncio.sleep(session.clock.nap(left))
        await hop(drive.notice, session)


async def invoke(session: Session, fn: Callable[[], Awaitable[Any]]) -> Returned | BaseException:
    """Run the workflow function itself, at the root of a run, in a task of its own.

    So it is known who is cancelled: a part of the run from inside (a time-out, a failing sibling), which is a failure of
    that part; or whoever waits for the run (the end of the loop, an impatient caller), who gives it up for now. Those get
    their own cancellation back, and not that of our task: anyio and `asyncio.timeout` know theirs by it.
    """
    outer = asyncio.current_task()
    if outer is None:
        raise AssertionError(session.run)
    before = outer.cancelling()
    session.is_given_up = lambda: outer.cancelling() > before
    session.invoked = asyncio.get_running_loop().time()
    session.tasks_before = WeakSet(asyncio.all_tasks())
    missed = False

    def pass_on(inner: asyncio.Task[Any], error: asyncio.CancelledError) -> None:
        nonlocal missed
        missed = not inner.cancel(*error.args)

    outcome, cancelled = await to_the_end(WorkflowTask(_invoked(session, fn)), pass_on)
    if cancelled is None:
        return outcome
    if missed:  # It had ended already, so the cancellation is still to be met here.
        outer.uncancel()
        outer.cancel(*cancelled.args)
    session.given_up_by(cancelled)
    return cancelled if isinstance(outcome, asyncio.CancelledError) else outcome


async def _invoked(session: Session, fn: Callable[[], Awaitable[Any]]) -> Returned | BaseException:
    token = current.set_place(session.root_place(asyncio.current_task()))
    outcome: Returned | BaseException
    try:
        with current.driven:
            outcome = session.result(await fn())
    except BaseException as error:  # noqa: BLE001 - what it means is decided by `ending.conclude`
        outcome = error
    finally:
        current.reset(token)
    session.function_ended()
    return await _effects_ended(session) or outcome


async def _effects_ended(session: Session) -> asyncio.CancelledError | None:
    """Effects of tasks that nobody waits for any more: their outcome is recorded before the run is let go of."""
    cancelled = None
    while session.has_effects_in_flight:
        try:
            await asyncio.sleep(LOOK_SECONDS)
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


# -- the way to the writer thread and back --------------------------------------------------------


class _Durable(asyncio.Future[None]):
    """Cannot be cancelled: one task's cancellation must not cut off the others that ride along."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class _Turn:
    """What the tasks of one turn of one loop wait for together: one wake-up for all of their tickets."""

    __slots__ = ("_closed", "_lock", "_loop", "_missing", "_number", "future")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future = _Durable(loop=loop)
        self._loop = loop
        self._lock = threading.Lock()
        self._missing: set[int] = set()
        self._number = 0
        self._closed = False

    def join(self) -> Callable[[], None]:
        """One more ticket. What is returned says that it is done; to be called from whichever thread commits."""
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
        """The turn is over: nobody joins any more. Only now may the last one done wake the others."""
        with self._lock:
            self._closed = True
            ready = not self._missing
        if ready:
            self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
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
