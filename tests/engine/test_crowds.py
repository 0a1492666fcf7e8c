"""Very many runs at once in one loop: they begin a few at a time, and none keeps another one out."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf
from surefoot.engine.drive import acts_async


@pytest.fixture
def narrow(monkeypatch):
    """A door for a handful of runs."""
    monkeypatch.setattr(acts_async, "CROWD", 4)
    monkeypatch.setattr(acts_async, "LEAST_BEGIN", 2)


@pytest.mark.usefixtures("narrow")
def test_all_runs_of_a_crowd_are_run_to_their_end():
    """Whoever waits to begin is woken by those before it."""
    begun = []

    @sf.step
    async def work(n: int) -> int:
        begun.append(n)
        return n

    @sf.workflow
    async def worked(n: int) -> int:
        return await work(n)

    async def crowd():
        return await asyncio.gather(*(worked.run(f"run-{n}", n) for n in range(30)))

    assert list(range(30)) == asyncio.run(crowd())
    assert list(range(30)) == begun  # who came first begins first
    assert list(range(30)) == asyncio.run(crowd())  # in another loop; recorded results need the door, too
    assert 30 == len(begun)


@pytest.mark.usefixtures("narrow")
def test_runs_that_wait_for_a_later_one_do_not_keep_it_out():
    """A fixed number of places would be a deadlock here."""
    opened = asyncio.Event()

    @sf.workflow
    async def waits(n: int) -> int:
        await opened.wait()
        return n

    @sf.workflow
    async def opens() -> None:
        opened.set()

    async def crowd():
        waiting = [asyncio.create_task(waits.run(f"waits-{n}", n)) for n in range(12)]
        await asyncio.wait_for(opens.run("opens"), timeout=20)
        return await asyncio.gather(*waiting)

    assert list(range(12)) == asyncio.run(crowd())


@pytest.mark.usefixtures("narrow")
def test_a_run_that_is_cancelled_before_it_begins_leaves_nothing():
    """Nothing of it is recorded, and those behind it begin all the same."""

    @sf.workflow
    async def worked(n: int) -> int:
        return n

    async def crowd():
        tasks = [asyncio.create_task(worked.run(f"run-{n}", n)) for n in range(12)]
        await asyncio.sleep(0)
        for task in tasks[6:9]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    ended = asyncio.run(crowd())

    assert [n for n in range(12) if n not in (6, 7, 8)] == [one for one in ended if isinstance(one, int)]
    assert 9 == len(list(sf.runs()))


@pytest.mark.usefixtures("narrow")
def test_runs_that_fail_before_they_write_anything_do_not_keep_others_out():
    """The door goes by turns of the loop, not by runs that came through."""

    @sf.workflow
    async def worked(n: int) -> int:
        return n

    async def crowd():
        bad = [worked.run(" no id", n) for n in range(12)]
        good = [worked.run(f"run-{n}", n) for n in range(3)]
        return await asyncio.gather(*bad, *good, return_exceptions=True)

    ended = asyncio.run(crowd())

    assert [0, 1, 2] == ended[12:]
    assert all(isinstance(one, sf.SurefootError) for one in ended[:12])
