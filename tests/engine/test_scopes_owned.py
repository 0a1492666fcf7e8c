"""A scope label belongs to one line of control: who counts in it must not depend on who came first."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio

import surefoot as sf
import surefoot.aio as asf


@sf.step
def look(n: object = None) -> object:
    return n


@asf.step
async def alook(n: object = None) -> object:
    return n


def addresses(run_id: str = "r") -> list[str]:
    return sorted(call.address for call in sf.get_run(run_id).steps())


@pytest.mark.parametrize("start", ["gather", "group"])
def test_a_second_task_that_opens_a_label_after_the_first_has_left_it_is_refused(start):
    """Timing kept them apart this time; after a crash it may be the other way round, and each gets the other's value."""
    left = asyncio.Event()

    async def ticket(n: int) -> None:
        if n:
            await left.wait()
        with asf.scope("draw"):
            await alook()
        left.set()

    @asf.workflow
    async def wf() -> None:
        if start == "gather":
            await asyncio.gather(ticket(0), ticket(1))
        else:
            async with asyncio.TaskGroup() as group:
                group.create_task(ticket(0))
                group.create_task(ticket(1))

    with pytest.raises(sf.UsageError, match=r"\[draw\] was opened by another task.*sf\.gather"):
        asyncio.run(wf.run("r"))
    assert sf.get_run("r").status == "queued", "the run can go on with mended code"


def test_a_refusal_that_the_code_swallows_does_not_let_the_run_go_on():
    async def ticket() -> None:
        with asf.scope("draw"):
            await alook()

    @asf.workflow
    async def wf() -> str:
        for _ in range(2):
            await asyncio.gather(asyncio.create_task(ticket()), return_exceptions=True)
        return "all fine"

    with pytest.raises(sf.UsageError, match="another task"):
        asyncio.run(wf.run("r"))


def test_the_same_line_opens_its_label_again_and_goes_on_counting():
    async def own() -> None:
        for n in range(2):
            with asf.scope("own"):
                await alook(n)

    @asf.workflow
    async def wf() -> None:
        for n in range(2):
            with asf.scope("x"), asf.scope("x"):
                await alook(n)
        await asyncio.create_task(own())

    asyncio.run(wf.run("r"))
    assert addresses() == ["[own]/alook#1", "[own]/alook#2", "[x]/[x]/alook#1", "[x]/[x]/alook#2"]


@pytest.mark.parametrize("colour", ["blocking", "async"])
def test_one_map_after_the_other_over_the_same_keys_is_one_line(colour):
    """What the branches opened belongs to the line that has joined them; the numbers are the same each time."""

    def one(n: str) -> object:
        with sf.scope("inner"):
            return look(n)

    async def aone(n: str) -> object:
        with asf.scope("inner"):
            return await alook(n)

    @sf.workflow
    def wf() -> None:
        for _ in range(2):
            sf.map(one, ["a", "b"], key=str)
        with sf.scope("a"):
            look("own")

    @asf.workflow
    async def awf() -> None:
        for _ in range(2):
            await asf.map(aone, ["a", "b"], key=str)
        with asf.scope("a"):
            await alook("own")

    if colour == "blocking":
        wf.run("r")
    else:
        asyncio.run(awf.run("r"))
    name = "look" if colour == "blocking" else "alook"
    assert addresses() == [
        *(f"[{key}]/[inner]/{name}#{n}" for key in "a" for n in (1, 2)),
        f"[a]/{name}#1",
        *(f"[{key}]/[inner]/{name}#{n}" for key in "b" for n in (1, 2)),
    ]


def test_a_bare_task_cannot_open_the_label_of_a_branch():
    @asf.workflow
    async def wf() -> None:
        async def thief() -> None:
            with asf.scope("a"):
                await alook()

        await asf.map(alook, ["a", "b"], key=str)
        await asyncio.create_task(thief())

    with pytest.raises(sf.UsageError, match=r"\[a\]"):
        asyncio.run(wf.run("r"))


def test_a_map_cannot_use_the_label_of_a_bare_task():
    @asf.workflow
    async def wf() -> None:
        async def early() -> None:
            with asf.scope("a"):
                await alook()

        await asyncio.create_task(early())
        await asf.map(alook, ["a", "b"], key=str)

    with pytest.raises(sf.UsageError, match=r"\[a\]"):
        asyncio.run(wf.run("r"))


def test_a_thread_is_not_taken_for_one_that_has_ended():
    """The numbers of threads are used again, most often at once."""

    def work() -> None:
        with sf.scope("draw"):
            look()

    @sf.workflow
    def wf() -> str:
        idents = []
        for _ in range(20):
            thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
            thread.start()
            idents.append(thread.ident)
            thread.join()
        return f"{len(set(idents))} numbers for {len(idents)} threads"

    errors = []
    hook, threading.excepthook = threading.excepthook, lambda args: errors.append(args.exc_value)
    try:
        with pytest.raises(sf.UsageError, match="another task or thread"):
            wf.run("r")
    finally:
        threading.excepthook = hook
    assert len(errors) == 19


def test_two_jobs_of_one_pool_thread_are_two_lines():
    """Which job comes first in the pool is luck, though one thread serves both."""

    def work() -> object:
        with sf.scope("draw"):
            return look()

    @sf.workflow
    def wf() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(contextvars.copy_context().run, work).result()
            pool.submit(contextvars.copy_context().run, work).result()

    with pytest.raises(sf.UsageError, match="another task or thread"):
        wf.run("r")


def test_what_a_task_hands_to_threads_one_after_the_other_is_its_own_line():
    """It waits for each; which thread of the pool does it makes no difference."""

    def work(n: int) -> object:
        with sf.scope("draw"):
            return look(n)

    @asf.workflow
    async def wf() -> list[object]:
        found = [await asyncio.to_thread(work, n) for n in range(3)]
        with asf.scope("draw"):
            return [*found, await alook(3)]

    assert asyncio.run(wf.run("r")) == [0, 1, 2, 3]
    assert addresses() == ["[draw]/alook#1", "[draw]/look#1", "[draw]/look#2", "[draw]/look#3"]


def test_threads_that_are_waited_for_together_are_lines_of_their_own():
    def work(n: int) -> object:
        with sf.scope("draw"):
            return look(n)

    @asf.workflow
    async def wf() -> None:
        await asyncio.gather(asyncio.to_thread(work, 1), asyncio.to_thread(work, 2))

    with pytest.raises(sf.UsageError, match="another task or thread"):
        asyncio.run(wf.run("r"))


def test_the_next_segment_gives_its_labels_anew():
    @asf.workflow
    async def wf(n: int) -> object:
        async def own() -> object:
            with asf.scope("x"):
                return await alook(n)

        found = await asyncio.create_task(own())
        return asf.continue_as_new(n - 1) if n else found

    assert asyncio.run(wf.run("r", 2)) == 0


# -- trio ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scoped", [True, False])
def test_tasks_of_trio_are_refused_by_name(scoped):
    """They share a thread, and asyncio knows nothing of them: they would be taken for one caller."""

    async def tool(n: int) -> None:
        await trio.lowlevel.checkpoint()
        if scoped:
            with sf.scope(f"tool {n}"):
                look(n)
        else:
            look(n)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tool, 1)
            nursery.start_soon(tool, 2)

    @sf.workflow
    def wf() -> None:
        trio.run(main)

    with pytest.raises(sf.UsageError, match=r"a task of trio.*asyncio\.run"):
        wf.run("r")
    assert sf.get_run("r").status == "queued"
    assert sf.get_run("r").steps() == []


def test_an_async_workflow_started_in_trio_is_refused_by_name():
    @asf.workflow
    async def wf() -> None:
        await alook()

    async def main() -> None:
        await wf.run("r")

    async def queue() -> None:
        await wf.start("r")

    for fn in (main, queue):
        with pytest.raises(sf.UsageError, match=r"a task of trio.*trio\.to_thread\.run_sync"):
            trio.run(fn)


def test_a_blocking_workflow_runs_in_a_task_of_trio_and_in_its_threads():
    """While it runs there, no other task of that loop does."""

    @sf.workflow
    def wf(n: int) -> list[object]:
        with sf.scope("x"):
            look(n)
        return sf.gather(lambda: look(n), lambda: look(n))

    async def main() -> list[object]:
        return [wf.run("r1", 1), await trio.to_thread.run_sync(wf.run, "r2", 2)]

    assert trio.run(main) == [[1, 1], [2, 2]]
