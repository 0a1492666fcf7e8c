"""Cancelled from inside, then killed: whatever way the code took the first time it takes again, or it stops loudly."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

import surefoot as sf
import surefoot.aio as asf

COMMON = """
import asyncio, os, sys
import surefoot.aio as sf

def ledger(line):
    with open("ledger", "a") as file:
        file.write(f"{line}\\n")

def quick():
    return "quick" in sys.argv

def dies(where):
    if f"die-{where}" in sys.argv:
        os._exit(9)

@sf.step
async def work(n):
    ledger(f"work {n}")
    if n == 2 and not quick():
        await asyncio.Event().wait()
    return n

@sf.effect
async def pay(n):
    if n == 2 and not quick():
        await asyncio.sleep(0.3)
    ledger(f"pay {n}")
    return n

@sf.effect
async def tell(way):
    ledger(f"tell {way}")

@sf.step
async def fails():
    await asyncio.sleep(0.5)
    raise ValueError("boom")
"""
MAIN = """
if __name__ == "__main__":
    try:
        print(asyncio.run(wf.run("r", sys.argv[1])))
    except sf.Stopped as stop:
        print(type(stop).__name__, stop)
        sys.exit(3)
"""
TIMED = f"""{COMMON}
async def step():
    await work(1); await work(2); await pay(3)

async def effect():
    await pay(1); await pay(2); await pay(3)

async def nap():
    await work(1); await sf.sleep(0 if quick() else "1h"); await pay(3)

async def branches():
    await sf.map(work, [1, 2, 3], key=str, concurrency=2); await pay(3)

async def tasks():
    async def one(n):
        with sf.scope(f"task {{n}}"):
            await work(n)
    async with asyncio.TaskGroup() as group:
        group.create_task(one(1)); group.create_task(one(2))
    await pay(3)

async def cleanup():
    await work(1)
    try:
        await work(2)
    finally:
        await pay("cleanup")

@sf.workflow
async def wf(way):
    came = "in time"
    try:
        async with asyncio.timeout(None if "never" in sys.argv else 0.2):
            await globals()[way]()
    except TimeoutError:
        came = "late"
    await tell(came)
    dies("after")
    return came
{MAIN}"""
WAYS = ["step", "effect", "nap", "branches", "tasks", "cleanup"]


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_was_cut_off_waits_for_the_same_cancellation(program, ledger, way):
    """On resume everything is quick. The time-out comes all the same, and finds the code where it was."""
    program.write(TIMED)
    assert program.run(way, "die-after").returncode == 9
    before = ledger.lines
    assert before[-1] == "tell late"

    again = program.run(way, "quick")

    assert again.stdout.strip() == "late", again.stderr
    assert ledger.lines == before


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_nothing_cancels_any_more_stops_and_nothing_is_executed(program, ledger, way):
    program.write(TIMED)
    assert program.run(way, "die-after").returncode == 9
    before = ledger.lines

    again = program.run(way, "quick", "never")

    assert again.returncode == 3, again.stdout + again.stderr
    assert again.stdout.startswith("CodeChanged")
    assert "sf.timeout" in again.stdout
    assert ledger.lines == before
    assert program.run(way, "quick").stdout.strip() == "late", "with the time-out back it goes on"
    assert ledger.lines == before


LOCKS = f"""{COMMON}
@sf.effect
async def lock(n):
    ledger(f"lock {{n}}"); return n

@sf.effect
async def release(ns):
    ledger(f"release {{ns}}")

@sf.step
async def look():
    await asyncio.sleep(0.5)

async def holder():
    mine = []
    with sf.scope("holder"):
        try:
            mine.append(await lock(1))
            await asyncio.sleep(0.05)  # a library call in between
            mine.append(await lock(2))
            if not quick():
                await asyncio.sleep(60)
        finally:
            dies("in")
            await release(mine)
            dies("after")

async def sibling():
    async def failing():
        with sf.scope("failing"):
            await fails()
    try:
        async with asyncio.TaskGroup() as group:
            if "swapped" in sys.argv:
                group.create_task(holder()); group.create_task(failing())
            else:
                group.create_task(failing()); group.create_task(holder())
    except* ValueError:
        pass

async def parent():
    async def failing():
        with sf.scope("failing"):
            await fails()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(failing())
            await holder()
    except* ValueError:
        pass

async def cancel():
    task = asyncio.create_task(holder())
    await look()
    task.cancel()
    await asyncio.wait([task])

@sf.workflow
async def wf(way):
    await globals()[way]()
    await tell("released")
    return "clean"
{MAIN}"""


@pytest.mark.parametrize("order", ["", "swapped"])
@pytest.mark.parametrize("point", ["in", "after"])
@pytest.mark.parametrize("way", ["sibling", "parent"])
def test_a_failing_sibling_strikes_on_replay_no_earlier_than_it_did(program, ledger, way, point, order):
    """Its failure is on record and comes at once; the other task still waits for something of its own."""
    program.write(LOCKS)
    assert program.run(way, f"die-{point}", order).returncode == 9

    for _ in range(2):
        again = program.run(way, order)
        assert again.stdout.strip() == "clean", again.stdout + again.stderr
    assert ledger.lines == ["lock 1", "lock 2", "release [1, 2]", "tell released"]


@pytest.mark.parametrize("point", ["in", "after"])
def test_a_task_that_is_cancelled_explicitly_goes_the_same_way(program, ledger, point):
    """What leads to the cancellation is handed over when the other task is where it was."""
    program.write(LOCKS)
    assert program.run("cancel", f"die-{point}").returncode == 9

    again = program.run("cancel")

    assert again.stdout.strip() == "clean", again.stdout + again.stderr
    assert ledger.lines == ["lock 1", "lock 2", "release [1, 2]", "tell released"]


def test_a_task_that_is_cancelled_earlier_than_before_begins_nothing_new(program, ledger):
    """The code asks to release one lock, and two are taken."""
    program.write(LOCKS)
    assert program.run("cancel", "die-in").returncode == 9
    program.write(LOCKS.replace("await look()", "await asyncio.sleep(0.02)"))

    again = program.run("cancel")

    assert again.returncode == 3
    assert "cancelled earlier than before" in again.stdout
    assert "[holder]/lock#2" in again.stdout
    assert ledger.lines == ["lock 1", "lock 2"]


def test_code_that_was_cancelled_between_two_calls_and_now_is_not_stops(program, ledger):
    """It comes to the same call, but in another way: it would go on behind it, and before it did not."""
    program.write(LOCKS)
    assert program.run("sibling", "die-after").returncode == 9
    before = ledger.lines
    program.write(LOCKS.replace("group.create_task(failing()); group", "group"))

    again = program.run("sibling", "quick")

    assert again.returncode == 3, again.stdout + again.stderr
    assert "was cancelled before it came to [holder]/release#1" in again.stdout
    assert ledger.lines == before


# -- what is no cancellation of the run itself -------------------------------------------------------------------------


def test_a_task_that_is_cancelled_since_a_sibling_stops_is_not_on_record_as_cancelled(kinds):
    """The run only stands still. With the answer, both go on."""
    asked, log = asyncio.Event(), []

    @asf.step
    async def slow() -> str:
        log.append("slow")
        await asked.wait()
        if len(log) == 1:
            await asyncio.Event().wait()
        return "slow"

    async def one() -> None:
        with asf.scope("one"):
            await slow()

    async def two() -> None:
        with asf.scope("two"):
            try:
                await asf.approve("well?")
            finally:
                asked.set()

    @asf.workflow
    async def wf() -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(one())
            group.create_task(two())
        return "done"

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(wf.run("r"))
    assert "CallCancelled" not in kinds("r")
    sf.get_run("r").answer("[two]/approve#1", True)
    asked = asyncio.Event()
    assert asyncio.run(wf.run("r")) == "done"


@pytest.mark.parametrize("swallowed", [True, False])
def test_a_run_that_is_given_up_has_no_cancellation_on_record(kinds, swallowed):
    started, log = asyncio.Event(), []

    @asf.step
    async def slow() -> str:
        log.append("slow")
        if len(log) == 1:
            started.set()
            await asyncio.Event().wait()
        return "slow"

    @asf.workflow
    async def wf() -> str:
        if swallowed:
            with contextlib.suppress(asyncio.CancelledError):
                return await slow()
            return "swallowed"
        return await slow()

    async def main() -> None:
        task = asyncio.create_task(wf.run("r"))
        await started.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert "CallCancelled" not in kinds("r")


def test_plan_ends_where_a_cancellation_is_waited_for(program):
    """A dry replay waits for nothing."""
    program.write(TIMED)
    assert program.run("step", "die-after").returncode == 9
    program.write(
        """
        import app, surefoot as sf
        plan = sf.get_run("r").plan()
        print(plan.stops, plan.next)
        """,
        "plan.py",
    )
    planned = program.run(name="plan.py")
    assert planned.stdout.strip() == "[] []", planned.stdout + planned.stderr


RACE = f"""{COMMON}
@sf.step
async def bid(n):
    await asyncio.sleep(0.05 * n)
    return n

@sf.workflow
async def wf(way):
    async def one(n):
        with sf.scope(f"bidder {{n}}"):
            if "late" not in sys.argv and n == 2:
                await asyncio.sleep(0)
            return await bid(n)
    tasks = [asyncio.create_task(one(n)) for n in ((2, 1) if "late" in sys.argv else (1, 2))]
    order = []
    for task in asyncio.as_completed(tasks):
        order.append(await task)
    await tell(order)
    dies("after")
    return order
{MAIN}"""


def test_who_came_first_comes_first_again(program, ledger):
    """Both are answered at once on replay: the journal says who was quicker, and not the order of the tasks."""
    program.write(RACE)
    assert program.run("race", "die-after").returncode == 9
    assert ledger.lines == ["tell [1, 2]"]

    again = program.run("race", "late")

    assert again.stdout.strip() == "[1, 2]", again.stdout + again.stderr
    assert ledger.lines == ["tell [1, 2]"]
