"""Async flows: tasks, time-outs and cancellations between and around calls, with awaits that are none of ours.

A flow is `aw:NAME.WHEN@TIMING`: WHEN says in tenths of a second when something strikes, TIMING how quick everything is in
the processes that take the run up: what was recorded answers at once, what is foreign is slower or quicker than before.
The first process has the natural timing. A resume goes the same way, or it is refused by name; then what the refusal
offers is done: the run goes on with what cancelled it before.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import lru_cache, partial
from typing import Any

import anyio

import surefoot as sf
import surefoot.aio as asf
from surefoot.core.timer import MICROS
from surefoot.engine.process import runtime
from tests.crash import looptime, programs
from tests.crash.flows import Bare, Flow, finish
from tests.crash.seeing import Eyes, refusals
from tests.crash.stage import EPOCH_SECONDS, did, done_parts, stage, stepped, undid

PREFIX = "aw:"
TICK = 0.1
APART_SECONDS = 1000
"""So much later the next process lives: later than anything that the one before has waited for."""
REFUSED = "another timing was refused"
WHENS = range(1, 8)


# --- timing --------------------------------------------------------------------------------------------------------------

Timing = Callable[[random.Random], tuple[float, float]]
"""How many times as long foreign awaits, and calls, take in a process that takes a run up."""
TIMINGS: dict[str, Timing] = {
    "same": lambda _: (1, 1),
    "quick": lambda _: (0, 0),
    "slow": lambda _: (7, 1),
    "busy": lambda _: (0, 7),
    "idle": lambda _: (7, 0),
    "mixed": lambda luck: (luck.choice((0, 0.3, 1, 4)), luck.choice((0, 0.3, 1, 4))),
    "wild": lambda luck: (luck.random() * 3, luck.random() * 3),
}
_timing: Timing = TIMINGS["same"]
_luck = random.Random()


async def nap(ticks: float) -> None:
    """Something that takes its time and is no call: a request, a lock, a queue."""
    await asyncio.sleep(ticks * TICK * _timing(_luck)[0])


async def _takes(ticks: float) -> None:
    await asyncio.sleep(ticks * TICK * _timing(_luck)[1])


# --- calls -----------------------------------------------------------------------------------------------------------------


@asf.step
async def work(n: int, ticks: float) -> int:
    stepped("work", n)
    await _takes(ticks)
    return n


@asf.step
async def fails(n: int, ticks: float) -> None:
    stepped("fails", n)
    await _takes(ticks)
    raise ValueError(f"boom {n}")


@asf.effect(in_flight="0s")
async def pay(n: int, ticks: float) -> int:
    did("pay", n, "probed", ticks=ticks)
    await _takes(ticks)
    return n


@pay.check
def paid(n: int, ticks: float) -> Any:
    return sf.happened(n) if done_parts("pay", n, sf.run_id()) else sf.not_happened()


@asf.effect(in_flight="0s")
async def tell(n: int, what: Any) -> None:
    did("tell", n, "probed", what=what)


@tell.check
def is_told(n: int, what: Any) -> Any:
    return sf.happened(None) if done_parts("tell", n, sf.run_id()) else sf.not_happened()


@asf.effect(in_flight="0s")
async def book(n: int, ticks: float) -> int:
    did("book", n, "probed", ticks=ticks)
    return n


@book.check
def booked(n: int, ticks: float) -> Any:
    return sf.happened(n) if done_parts("book", n, sf.run_id()) else sf.not_happened()


@book.undo(on_crash="retry")
async def unbook(n: int, ticks: float, result: int | None) -> None:
    undid("book", n, "keyed")


# --- flows -----------------------------------------------------------------------------------------------------------------

Body = Callable[["Room", float], Awaitable[Any]]
FLOWS: dict[str, Body] = {}
SETTLED: set[str] = set()
"""Flows that come to the same whenever they are killed, as long as the timing is natural."""


def flow_named(body: Body) -> Body:
    FLOWS[body.__name__] = body
    return body


def settled(body: Body) -> Body:
    SETTLED.add(body.__name__)
    return flow_named(body)


TAKES_NO_TIME = (0.0,)
"""What a call is given that is not told how long it takes."""


class Room:
    """One pass of the code: what its lines of control see."""

    def __init__(self) -> None:
        self.eyes = Eyes()

    async def call(self, fn: Any, *args: Any, line: str = "main") -> Any:
        return await self.eyes.acall(fn, *args, *TAKES_NO_TIME[len(args) - 1 :], line=line)

    def saw(self, what: Any, line: str = "main") -> Any:
        return self.eyes.saw_lately("found", what, line)

    @contextlib.asynccontextmanager
    async def task(self, name: str) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
        """A task with a scope of its own."""
        try:
            with asf.scope(name):
                yield partial(self.call, line=name)
        finally:
            self.eyes.leave(name)

    async def holder(self, name: str, base: int, ends: float = 60) -> str:
        """Takes two things, with something foreign in between, and gives back what it has."""
        mine: list[int] = []
        async with self.task(name) as call:
            try:
                mine.append(await call(pay, base + 1))
                await nap(1)
                mine.append(await call(work, base + 2, 1))
                await nap(1)
                mine.append(await call(pay, base + 3, 1))
                await nap(ends)
            finally:
                await call(tell, base, list(mine))
        return "held"

    async def failing(self, name: str, n: int, when: float) -> None:
        async with self.task(name) as call:
            await nap(when / 2)
            await call(fails, n, when / 2)

    async def over(self, way: Any) -> Any:
        """Which way the code went is told to the world, and is its result."""
        self.saw(way)
        await self.call(work, 98)
        await self.call(tell, 99, way)
        return way


@settled
async def foreign(room: Room, when: float) -> Any:
    """Everything that code may await between two calls."""
    lock, event, queue = asyncio.Lock(), asyncio.Event(), asyncio.Queue[int]()
    got = [await room.call(work, 1, when)]
    await asyncio.sleep(0)
    got.append(await asyncio.to_thread(lambda: 2))
    async with lock:
        got.append(await room.call(pay, 3))
        asyncio.get_running_loop().call_later(when * TICK, event.set)
        await event.wait()
    await queue.put(await room.call(work, 4))
    got.append(await queue.get())
    await nap(when)
    got.append(await room.call(pay, 5, 1))
    return await room.over(got)


@settled
async def generator(room: Room, when: float) -> Any:
    """An async generator with calls inside, closed early, whose end makes a call."""

    async def pages() -> AsyncIterator[int]:
        try:
            for n in range(1, 9):
                await nap(1)
                yield await room.call(work, n)
        finally:
            await room.call(pay, 50)

    got = []
    async with contextlib.aclosing(pages()) as turning:
        async for page in turning:
            got.append(page)
            if page >= when:
                break
    return await room.over(got)


@flow_named
async def group(room: Room, when: float) -> Any:
    """A sibling fails, and the others are cancelled wherever they are."""
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(room.failing("failing", 1, when))
            tasks.create_task(room.holder("one", 10))
            tasks.create_task(room.holder("two", 20, when))
        way: Any = "held"
    except* ValueError as errors:
        way = ["failed", len(errors.exceptions)]
    return await room.over(way)


@flow_named
async def parent(room: Room, when: float) -> Any:
    """A task fails, and the body of the block is cancelled."""
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(room.failing("failing", 1, when))
            await room.call(work, 2, 1)
            await nap(1)
            await room.call(pay, 3, 1)
            await nap(1)
            await room.call(work, 4, 1)
            await nap(30)
        way = "all"
    except* ValueError:
        way = "failed"
    return await room.over(way)


@flow_named
async def inner(room: Room, when: float) -> Any:
    """A group in a group: the inner one fails and is dealt with, the outer one goes on."""

    async def branch() -> str:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(room.failing("failing", 1, when))
                tasks.create_task(room.holder("inner", 10))
        except* ValueError:
            pass
        async with room.task("after") as call:
            await call(pay, 5)
        return "dealt with"

    async with asyncio.TaskGroup() as tasks:
        one = tasks.create_task(branch())
        two = tasks.create_task(room.holder("outer", 20, 2))
    return await room.over([one.result(), two.result()])


async def _in_time(room: Room, limit: Any) -> Any:
    """Calls and foreign awaits in a block that may be cut off at any of them."""
    try:
        async with limit:
            await room.call(work, 1, 1)
            await nap(1)
            await room.call(pay, 2, 1)
            await nap(1)
            await room.call(work, 3, 1)
    except TimeoutError as error:
        return await room.over(["late", str(error)])
    return await room.over("in time")


@flow_named
async def timed(room: Room, when: float) -> Any:
    """A limit that is not recorded."""
    return await _in_time(room, asyncio.timeout(when * TICK))


@flow_named
async def limited(room: Room, when: float) -> Any:
    """One that is."""
    return await _in_time(room, asf.timeout(when * TICK))


@flow_named
async def waited(room: Room, when: float) -> Any:
    """`asyncio.wait_for` around one call after the other, until one is in time."""
    for n in range(1, 4):

        async def one(n: int = n) -> None:
            async with room.task(f"try {n}") as call:
                await call(work, n, 4 - n)

        try:
            await asyncio.wait_for(one(), when * TICK / 2)
        except TimeoutError:
            room.saw(f"late {n}")
            continue
        return await room.over(n)
    return await room.over("never")


@flow_named
async def again(room: Room, when: float) -> Any:
    """Tried three times under a limit that is recorded."""
    for n in range(1, 4):
        try:
            async with asf.timeout(when * TICK / 2):
                await nap(0.5)
                await room.call(work, n, 4 - n)
        except TimeoutError:
            continue
        return await room.over(n)
    return await room.over("never")


@flow_named
async def both(room: Room, when: float) -> Any:
    """A recorded limit inside of one that is not, and the other way round."""
    way = []
    for outer, inside, n in ((asyncio.timeout, asf.timeout, 10), (asf.timeout, asyncio.timeout, 20)):
        try:
            async with outer(when * TICK), inside(0.4):
                await room.call(work, n + 1, 1)
                await nap(1)
                await room.call(pay, n + 2, 1)
                await nap(2)
            way.append("in time")
        except TimeoutError:
            way.append("late")
        room.saw(list(way))
    return await room.over(way)


@flow_named
async def cancelled(room: Room, when: float) -> Any:
    """The workflow cancels a task of its own."""
    task = asyncio.create_task(room.holder("one", 10))
    await room.call(work, 1, when / 2)
    await nap(when / 2)
    task.cancel()
    await asyncio.wait([task])
    return await room.over("cancelled" if task.cancelled() else "held")


@flow_named
async def swallowed(room: Room, when: float) -> Any:
    """A task that is cancelled, catches that, and goes on with other calls."""

    async def stubborn() -> list[int]:
        got = []
        async with room.task("stubborn") as call:
            for n in (11, 12, 13):
                try:
                    await nap(1)
                    got.append(await call(work, n, 1))
                except asyncio.CancelledError:
                    got.append(await call(pay, n + 10))
        return got

    task = asyncio.create_task(stubborn())
    await room.call(work, 1, when / 2)
    await nap(when / 2)
    task.cancel()
    return await room.over(await task)


@flow_named
async def shielded(room: Room, when: float) -> Any:
    """A time-out strikes around a shield: the task behind it goes on."""
    task = asyncio.create_task(room.holder("one", 10, 1))
    way = "in time"
    try:
        async with asyncio.timeout(when * TICK):
            await asyncio.shield(task)
    except TimeoutError:
        way = "late"
    await task
    return await room.over(way)


@flow_named
async def first(room: Room, when: float) -> Any:
    """The first of three, and the others are cancelled."""

    async def bid(n: int) -> int:
        async with room.task(f"bidder {n}") as call:
            await nap(n / 2)
            await call(pay, n)
            await call(work, n, abs(when - n) / 2)
        return n

    tasks = [asyncio.create_task(bid(n)) for n in (3, 1, 2)]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest)
    return await room.over(sorted(task.result() for task in done))


@flow_named
async def completed(room: Room, when: float) -> Any:
    """In the order in which they come."""

    async def bid(n: int) -> int:
        async with room.task(f"bidder {n}") as call:
            await nap(abs(when - 2 * n) / 2)
            return int(await call(work, n, n / 2))

    order = [await one for one in asyncio.as_completed([asyncio.create_task(bid(n)) for n in (3, 1, 2)])]
    return await room.over(order)


@flow_named
async def queued(room: Room, when: float) -> Any:
    """One task makes, two take: who gets what is a matter of timing."""
    queue: asyncio.Queue[int | None] = asyncio.Queue()
    taken: dict[str, list[int]] = {"one": [], "two": []}

    async def make() -> None:
        async with room.task("maker") as call:
            for n in range(1, 4):
                await nap(when / 3)
                queue.put_nowait(await call(work, n, 1))
        queue.put_nowait(None)
        queue.put_nowait(None)

    async def take(name: str, ticks: float) -> None:
        async with room.task(name) as call:
            while (n := await queue.get()) is not None:
                taken[name].append(n)
                await call(pay, n, 1)
                await nap(ticks)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(make())
        tasks.create_task(take("one", 2))
        tasks.create_task(take("two", 0))
    return await room.over([taken["one"], taken["two"]])


@flow_named
async def locked(room: Room, when: float) -> Any:
    """A lock that is held across calls: who comes first is a matter of timing."""
    lock, order = asyncio.Lock(), []

    async def enter(name: str, n: int, ticks: float) -> None:
        async with room.task(name) as call:
            await call(work, n, ticks)
            await nap(ticks)
            async with lock:
                order.append(name)
                await call(pay, n + len(order) * 10, 1)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(enter("one", 1, when / 2))
        tasks.create_task(enter("two", 2, 2))
    return await room.over(order)


async def _branching(room: Room, limit: Any) -> Any:
    """`sf.gather` and `sf.map` in a block that may be cut off."""

    async def one(n: int) -> int:
        await nap(n / 2)
        await room.call(work, n, 1, line=f"branch {n}")
        return int(await room.call(pay, n, 1, line=f"branch {n}"))

    try:
        async with limit:
            got = [*await asf.map(one, [1, 2, 3], key=str, concurrency=2), *await asf.gather(one(4), one(5))]
    except TimeoutError:
        return await room.over("late")
    return await room.over(got)


@flow_named
async def branches(room: Room, when: float) -> Any:
    return await _branching(room, asyncio.timeout(when * TICK))


@flow_named
async def limited_branches(room: Room, when: float) -> Any:
    return await _branching(room, asf.timeout(when * TICK))


@flow_named
async def moved_on(room: Room, when: float) -> Any:
    """`anyio.move_on_after`."""
    with anyio.move_on_after(when * TICK) as scope:
        await room.call(work, 1, 1)
        await nap(1)
        await room.call(pay, 2, 1)
        await nap(1)
        await room.call(work, 3, 1)
    return await room.over("late" if scope.cancelled_caught else "in time")


@flow_named
async def failed_after(room: Room, when: float) -> Any:
    """`anyio.fail_after` around branches."""
    try:
        with anyio.fail_after(when * TICK):
            await asf.gather(room.call(work, 1, 2, line="1"), room.call(pay, 2, 3, line="2"))
            await nap(1)
            await room.call(pay, 3, 1)
    except TimeoutError:
        return await room.over("late")
    return await room.over("in time")


@flow_named
async def anyio_group(room: Room, when: float) -> Any:
    """A task of anyio's group fails."""
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(room.failing, "failing", 1, when)
            tasks.start_soon(room.holder, "one", 10)
        way = "held"
    except* ValueError:
        way = "failed"
    return await room.over(way)


@flow_named
async def anyio_cancel(room: Room, when: float) -> Any:
    """anyio's group is cancelled by the workflow, which shields its last call."""

    async def careful() -> None:
        async with room.task("careful") as call:
            try:
                await call(work, 11, 1)
                await nap(2)
                await call(pay, 12, 1)
                await nap(60)
            finally:
                with anyio.CancelScope(shield=True):
                    await call(pay, 13)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(careful)
        await room.call(work, 1, when)
        tasks.cancel_scope.cancel()
    return await room.over("over")


@flow_named
async def undone(room: Room, when: float) -> Any:
    """A saga that a time-out cuts off is undone."""
    try:
        async with asyncio.timeout(when * TICK):
            async with asf.saga():
                await room.call(book, 1)
                await nap(1)
                await room.call(book, 2)
                await room.call(work, 3, 2)
                await nap(1)
                await room.call(book, 4)
    except TimeoutError:
        return await room.over("late")
    return await room.over("in time")


@flow_named
async def slept(room: Room, when: float) -> Any:
    """Recorded sleeps under limits of both kinds."""
    way = []
    for limit, n in ((asf.timeout, 1), (asyncio.timeout, 2)):
        try:
            async with limit(when * TICK):
                await room.call(work, n, 1)
                await asf.sleep(0.2)
                await room.call(pay, n, 1)
            way.append("in time")
        except TimeoutError:
            way.append("late")
        room.saw(list(way))
    return await room.over(way)


_whose: contextvars.ContextVar[str] = contextvars.ContextVar("whose", default="nobody's")


@settled
async def contexts(room: Room, when: float) -> Any:
    """Each task has its own context, before and after calls."""
    found = {}

    async def one(name: str, n: int) -> None:
        _whose.set(name)
        async with room.task(name) as call:
            await nap(n)
            await call(work, n, when / 2)
            await call(pay, n)
            found[name] = _whose.get()

    _whose.set("the run's")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(one("one", 2))
        tasks.create_task(one("two", 1))
    return await room.over([found["one"], found["two"], _whose.get()])


@settled
async def shared(room: Room, when: float) -> Any:
    """Two tasks, one after the other, under one label: which of them is the first is luck. It is refused."""
    got: dict[int, int] = {}

    async def draw(n: int, ticks: float) -> None:
        await nap(ticks)
        with asf.scope("draw"):
            got[n] = await work(n, 0.0)

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(draw(1, 1))
            tasks.create_task(draw(2, 1 + when))
    except* sf.UsageError:
        pass
    return await room.over(sorted(got))


# --- as flows ----------------------------------------------------------------------------------------------------------------


@asf.workflow
async def awaiting(name: str, when: float) -> Any:
    return await FLOWS[name](Room(), when)


@lru_cache(maxsize=256)
def flow(text: str) -> Flow:
    what, _, timing = text.removeprefix(PREFIX).partition("@")
    name, _, when = what.partition(".")
    return Flow(
        text,
        lambda: _lived(name, float(when), timing),
        threads=True,
        free=name not in SETTLED or timing != "same",
    )


def _lived(name: str, when: float, timing: str) -> Any:
    life = stage().life
    start = (EPOCH_SECONDS + life * APART_SECONDS) * MICROS
    runtime.default_clock = lambda: looptime.LoopClock(start)

    def drive() -> Any:
        with refusals():
            return looptime.run(lambda: awaiting.run("r", name, when))

    for timed in (timing if life > 1 else "same", "same"):
        _timed_as(timed, life)
        try:
            return {"r": finish(drive, "r")}
        except sf.CodeChanged as stop:
            if not stop.cures:
                raise Bare(str(stop)) from stop
            stage().goals.add(REFUSED)
        except sf.UsageError as misuse:
            stage().declined.append(str(misuse))
            return {"r": type(misuse).__name__}
    stage().declined.append(REFUSED)
    return {"r": REFUSED}


def _timed_as(timing: str, life: int) -> None:
    global _timing, _luck
    _timing, _luck = TIMINGS[timing], random.Random(life)


def drawn(seed: int) -> str:
    """The flow of that number: one after the other, so that all are had."""
    luck = random.Random(f"async {seed}")
    name = sorted(FLOWS)[seed % len(FLOWS)]
    return f"{PREFIX}{name}.{luck.choice(WHENS)}@{luck.choice(list(TIMINGS))}"


programs.ELSEWHERE[PREFIX] = flow
