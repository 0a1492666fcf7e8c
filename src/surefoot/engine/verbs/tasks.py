"""The waiting verbs for tasks: the same logic as `blocking.py`, driven without blocking the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, Unpack, overload

from surefoot.core.choice import OnError, OnTimeout
from surefoot.core.timer import Duration, after, seconds, until
from surefoot.engine.declare import current, drifts, rehearsal
from surefoot.engine.drive import acts_async
from surefoot.engine.drive.perform_async import call, run, verb
from surefoot.engine.operate import handle
from surefoot.engine.session import questions
from surefoot.engine.session.frame import Frame
from surefoot.engine.session.questions import Decision
from surefoot.engine.verbs import blocking, branches, events
from surefoot.engine.verbs.branches import Ends, MapOptions, MapResult
from surefoot.engine.verbs.tally import Tally

T = TypeVar("T")
R = TypeVar("R")


async def gather(*awaitables: Awaitable[Any], was: str | None = None) -> list[Any]:
    """Await side by side, each in a branch of its own. Results in order.

    `was=""` says that their calls were made one after the other before, in the scope around it.
    """
    place = current.require_task("gather")
    for awaitable in awaitables:
        if isinstance(awaitable, asyncio.Future):
            raise place.misused(
                "sf.gather got a task that was started elsewhere. "
                "Give it the coroutines themselves: sf.gather(a(), b())"
            )
    scopes = branches.gather_scopes(place, len(awaitables), was)
    thunks: list[Any] = [lambda one=one: one for one in awaitables]
    ends = await _side_by_side(Ends(place, scopes), thunks, len(awaitables))
    ends.raise_first()
    return ends.values


@overload
async def map(  # noqa: A001 - the settled public name
    fn: Callable[[T], Awaitable[R]],
    items: Iterable[T],
    *,
    on_error: Literal["raise"] = ...,
    **options: Unpack[MapOptions[T]],
) -> list[R]: ...
@overload
async def map(  # noqa: A001 - the settled public name
    fn: Callable[[T], Awaitable[R]],
    items: Iterable[T],
    *,
    on_error: Literal["collect"],
    **options: Unpack[MapOptions[T]],
) -> MapResult[R]: ...
async def map(  # noqa: A001 - the settled public name
    fn: Callable[[T], Awaitable[R]],
    items: Iterable[T],
    *,
    key: Callable[[T], object] | None = None,
    concurrency: int | None = None,
    on_error: OnError = "raise",
    was: branches.Was = None,
) -> list[R] | MapResult[R]:
    """Await `fn(item)` for each item, some side by side, each in a branch of its own. Results in order.

    `was` is the key function it had before, or `""` where the items were gone through in a plain loop.
    """
    place = current.require_task("map")
    width = branches.checked_width(concurrency, on_error)
    todo = list(items)
    scopes, names = branches.map_scopes(place, todo, key, was)
    ends = Ends(place, scopes, Tally(place.session, len(todo)))
    ends = await _side_by_side(ends, [lambda item=item: fn(item) for item in todo], width)  # type: ignore[misc]
    return branches.collected(ends, names, on_error)  # type: ignore[no-any-return]


async def _side_by_side(ends: Ends, thunks: list[Callable[[], Awaitable[Any]]], width: int) -> Ends:
    numbers = iter(range(len(thunks)))

    async def work() -> None:
        for index in numbers:
            with ends.branch(index, asyncio.current_task()):
                ends.values[index] = await thunks[index]()
            error = ends.errors[index]
            if isinstance(error, asyncio.CancelledError) and not isinstance(error, acts_async.CancelledAgain):
                return  # A replayed one ends its own branch only: the others' effects have to be known for an undo.

    tasks = [asyncio.create_task(work()) for _ in range(min(width, len(thunks)))]
    try:
        await _join(tasks)
    finally:
        ends.close()
        ends.place.line.join()  # Also if we are cancelled: the branches' effects are done.
    ends.join()
    return ends


async def _join(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for all. Cancelled: cancel the branches, and let effects in flight finish first."""
    cancelled: asyncio.CancelledError | None = None
    while pending := [task for task in tasks if not task.done()]:  # anyio may cancel us in every turn of the loop
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError as error:
            cancelled = error
            for task in pending:
                task.cancel(*error.args)
    if cancelled is not None:
        raise cancelled


async def sleep(duration: Duration, *, name: str | None = None) -> None:
    """Sleep; the deadline is recorded, so a crash does not start the wait again. `name` pins it, as in `sf.now`."""
    wait_seconds, called = seconds(duration), blocking.pinned("sleep", name)
    place = current.require_task("sleep")
    await verb(place, called, blocking.sleeping(place, called, lambda session: after(session.now(), wait_seconds)))


async def sleep_until(moment: datetime, *, name: str | None = None) -> None:
    """Sleep until a moment of the wall clock. `name` pins it, as in `sf.now`."""
    wall, called = blocking.wall_micros(moment), blocking.pinned("sleep", name)
    place = current.require_task("sleep_until")
    await verb(place, called, blocking.sleeping(place, called, lambda session: until(session.now(), wall)))


async def wait_event(name: str, timeout: Duration | None = None) -> Any:  # noqa: ASYNC109 - recorded, survives a crash
    """Wait for `sf.send_event(run_id, name, value)`. TimeoutError once `timeout` has passed."""
    place = current.require_task("wait_event")
    return place.session.decoded(await verb(place, "wait_event", blocking.waiting_for_event(place, name, timeout)))


async def approve(
    question: str,
    *,
    details: object = None,
    by: str | Sequence[str] | None = None,
    timeout: Duration | None = None,  # noqa: ASYNC109 - recorded, survives a crash
    on_timeout: OnTimeout = "deny",
) -> Decision:
    """Ask a person for a yes or a no. The run stands still until then; the process may end."""
    questions.checked_on_timeout(on_timeout)
    current.require_task("approve")
    place, address, asked = blocking.asked_for("approve", question, details, by, timeout)
    past = await verb(place, "approve", questions.asking(place, address, asked), address)
    return questions.decision(place.session, past, on_timeout, address)


async def ask(
    question: str,
    *,
    type: Any = None,  # noqa: A002 - the settled public name
    details: object = None,
    by: str | Sequence[str] | None = None,
    timeout: Duration | None = None,  # noqa: ASYNC109 - recorded, survives a crash
) -> Any:
    """Ask a person for an answer of this type. An answer that does not fit is refused when it is given."""
    current.require_task("ask")
    place, address, asked = blocking.asked_for("ask", question, details, by, timeout, type)
    past = await verb(place, "ask", questions.asking(place, address, asked, type), address)
    return questions.taken(place.session, past, type, address)


async def watch(witness: Any) -> Any:
    """Look at something outside and rely on it from here on. Gives what was seen, recorded; drift stops a resume."""
    place = current.require_task("watch")
    return await run(drifts.watching(place, witness), Frame(place.session, place))


async def verify() -> None:
    """Look at the whole world of this run again, now. Drift stops the run, or whatever `on_drift` says."""
    place = current.require_task("verify")
    await run(blocking.verifying(place), Frame(place.session, place))


async def _deliver(run_id: str, name: str, value: Any, store: str | None = None) -> None:
    await asyncio.to_thread(events.deliver, run_id, name, value, store)


_SEND = events.delivered_by(_deliver)


async def send_event(run_id: str, name: str, value: Any = None, *, store: str | None = None) -> None:
    """Deliver an event to a run; `sf.wait_event(name)` there gets the value."""
    place = current.get()
    if place is None or place is current.OUTSIDE:
        rehearsal.would_do("send_event outside of the run", run_id)  # here, in the caller's context
        await acts_async.hop(lambda: events.send_event(run_id, name, value, store=store))
    else:
        blocking.require_no_secret(place.session, name)
        await call(_SEND, (run_id, name, value), {} if store is None else {"store": store})


class AsyncRun:
    """A handle on one run, awaitable where it waits."""

    def __init__(self, run: handle.Run) -> None:
        self._run = run
        self.id = run.id

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._run, name)
        if not callable(found):
            return found

        async def awaitable(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(lambda: found(*args, **kwargs))

        return awaitable

    def __repr__(self) -> str:
        return repr(self._run)


async def get_run(run_id: str, *, store: str | None = None) -> AsyncRun:
    """The run with that id. NotFound names the store that was looked in."""
    return AsyncRun(await acts_async.hop(lambda: handle.get_run(run_id, store=store)))


async def runs(**query: Any) -> list[AsyncRun]:
    """The runs of a store, newest first."""
    return [AsyncRun(run) for run in await acts_async.hop(lambda: handle.runs(**query))]
