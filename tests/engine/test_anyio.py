"""`.run` is an awaitable like any other, also where anyio cancels: its scopes catch what is theirs.

anyio knows its own cancellation by the message, counts how often it cancelled, and cancels again in every turn of the
loop until the task is out of the scope.
"""

from __future__ import annotations

import asyncio

import anyio
import pytest

import surefoot as sf
import surefoot.aio as asf


@asf.step
async def slow(started: str = "") -> None:
    await asyncio.Event().wait()


@asf.step
async def look(n: int) -> int:
    return n


async def steps() -> None:
    await look(1)
    await slow()


async def branches() -> None:
    await asf.gather(slow(), slow(), look(2))


async def mapped() -> None:
    await asf.map(slow, ["a", "b", "c"], key=str, concurrency=2)


async def nap() -> None:
    await asf.sleep("1h")


async def foreign() -> None:
    await look(1)
    await asyncio.Event().wait()


async def undone() -> None:
    async with asf.saga():
        await look(1)
        await slow()


WAYS = {fn.__name__: fn for fn in (steps, branches, mapped, nap, foreign, undone)}


@asf.workflow
async def wf(way: str) -> None:
    await WAYS[way]()


async def begun(run_id: str) -> None:
    """Wait until the run is under way and recorded something, or stands still."""
    while True:
        try:
            if (await asf.get_run(run_id)).status in ("running", "sleeping"):
                return
        except sf.NotFound:
            pass
        await asyncio.sleep(0.002)


def at_rest() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() == 0


@pytest.mark.parametrize("turns", [0, 1, 5])
@pytest.mark.parametrize("way", WAYS)
def test_a_cancel_scope_around_run_catches_what_is_its_own(way, turns):
    """It escaped: the caller was cancelled for good by a time-out that it had asked for."""

    async def main() -> None:
        with anyio.CancelScope() as scope:

            async def cancel() -> None:
                await begun("r")
                for _ in range(turns):
                    await asyncio.sleep(0)
                scope.cancel()

            async with asyncio.TaskGroup() as group:
                group.create_task(cancel())
                await wf.run("r", way)
        assert scope.cancelled_caught
        assert at_rest()
        await asyncio.sleep(0)

    anyio.run(main)
    assert sf.get_run("r").status == "queued", "given up for now, and let go of"


@pytest.mark.parametrize("way", ["steps", "branches", "foreign"])
@pytest.mark.parametrize("seconds", [0, 0.001, 0.03])
def test_time_limits_around_run_raise_their_own_errors(way, seconds):
    async def main() -> None:
        with anyio.move_on_after(seconds) as scope:
            await wf.run("r1", way)
        assert scope.cancelled_caught
        with pytest.raises(TimeoutError):
            with anyio.fail_after(seconds):
                await wf.run("r2", way)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                await wf.run("r3", way)
        assert at_rest()

    anyio.run(main)


def test_a_task_group_of_anyio_can_be_cancelled_around_runs():
    async def main() -> None:
        async with anyio.create_task_group() as group:
            for way in WAYS:
                group.start_soon(wf.run, way, way)
            for way in WAYS:
                await begun(way)
            group.cancel_scope.cancel()
        assert at_rest()

    anyio.run(main)
    assert {run.status for run in sf.runs()} == {"queued"}


def test_an_effect_in_flight_is_recorded_before_a_scope_is_left(kinds):
    """anyio cancels in every turn of the loop; the outcome is on record all the same."""
    started, may_end, begin = [], [], asyncio.Event()

    @asf.effect
    async def pay() -> str:
        started.append(1)
        begin.set()
        for _ in range(20):
            await asyncio.sleep(0)
        may_end.append(1)
        return "paid"

    @asf.workflow
    async def paying() -> str:
        return await pay()

    async def main() -> None:
        with anyio.CancelScope() as scope:

            async def cancel() -> None:
                await begin.wait()
                scope.cancel()

            async with asyncio.TaskGroup() as group:
                group.create_task(cancel())
                await paying.run("r")
        assert scope.cancelled_caught

    anyio.run(main)
    assert may_end == [1]
    assert kinds("r")[-2:] == ["EffectDone", "RunReleased"]
    assert asyncio.run(paying.run("r")) == "paid"
    assert started == [1]


@pytest.mark.parametrize("call", ["step", "sleep", "gather", "effect"])
def test_scopes_of_anyio_inside_a_workflow_cut_calls_off(call):
    @asf.effect
    async def act() -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        return "acted"

    @asf.workflow
    async def inside() -> str:
        calls = {"step": slow, "sleep": nap, "gather": branches, "effect": act}
        with anyio.move_on_after(0.02 if call != "effect" else 0) as scope:
            await calls[call]()
        with pytest.raises(TimeoutError):
            with anyio.fail_after(0):
                await anyio.sleep_forever()
        return f"cut off: {scope.cancelled_caught}; {await look(3)}"

    assert asyncio.run(inside.run("r")) == "cut off: True; 3"
