"""That something has changed is said within a second, once, to whom it concerns."""

from __future__ import annotations

import asyncio
import json

import pytest

import surefoot as sf
from surefoot.console.live import MOST_OF_ONE, Change, Full, Live, event
from surefoot.engine.process import config


@pytest.fixture
def live(stopped):
    made = Live(lambda: config.runtime(create=False), poll_seconds=0.01)
    yield made
    made.close()


async def told(live, stream):
    """The next event of a stream."""
    async for text in stream:
        if text.startswith("event:"):
            return json.loads(text.split("data: ")[1])["runs"]
    return None


def test_a_change_is_told_with_its_run(live):
    async def story():
        every, mine, other = (live.stream(live.open("ann", run)) for run in ("", "r", "q"))
        for one in (every, mine, other):
            assert (await anext(one)).startswith("retry:")
        sf.get_run("r").send_event("n", 1, id="1")
        assert await told(live, every) == ["r"]
        assert await told(live, mine) == ["r"]
        sf.get_run("q").send_event("n", 1, id="1")
        assert await told(live, other) == ["q"]
        for one in (every, mine, other):
            await one.aclose()

    asyncio.run(story())
    assert live._listeners == {}


def test_changes_that_come_together_are_one():
    one = Change(1, frozenset("a")).joined(Change(2, frozenset("b")))
    many = Change(1, frozenset(map(str, range(40)))).joined(Change(2, frozenset(map(str, range(40, 80)))))

    assert one == Change(2, frozenset("ab"))
    assert many == Change(2, None)
    assert event(many) == 'event: changed\nid: 2\ndata: {"runs": null}\n\n'


def test_nobody_opens_more_than_so_many(live):
    async def story():
        opened = [live.open("ann", "") for _ in range(MOST_OF_ONE)]
        with pytest.raises(Full):
            live.open("ann", "")
        live.open("bob", "")
        live.leave(opened[0])
        live.open("ann", "")

    asyncio.run(story())


def test_the_poller_rests_while_nobody_looks(live):
    async def story():
        live.leave(live.open("ann", ""))
        if live._thread is not None:
            await asyncio.to_thread(live._thread.join)

    asyncio.run(story())
    assert live._thread is None


def test_a_store_that_comes_back_is_a_change(live, monkeypatch):
    away = [False]
    original = live._runtime

    def runtime():
        if away[0]:
            raise sf.StoreUnavailable("away")
        return original()

    monkeypatch.setattr(live, "_runtime", runtime)
    seen = []
    monkeypatch.setattr(live, "_tell", seen.append)

    async def story():
        live.open("ann", "")
        away[0] = True
        await asyncio.to_thread(live._pause.wait, 0.1)
        away[0] = False
        while not seen:
            await asyncio.to_thread(live._pause.wait, 0.01)

    asyncio.run(story())
    assert seen[0].runs is None


def test_a_stream_needs_somebody_who_is_signed_in(browse):
    assert browse(None).get("/api/v1/events").status_code == 401
    assert browse().get("/api/v1/events", headers={"Origin": "http://evil"}).status_code == 403
