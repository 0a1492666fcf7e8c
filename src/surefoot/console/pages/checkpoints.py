"""Explicit checkpoints: their generations, which one a load would take, and the difference of two states."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec import Struct

from surefoot.console import drawing
from surefoot.console.context import Page, Request
from surefoot.console.pages.drift import DiffLine, diff
from surefoot.engine.checkpoint import Checkpoint, Generation
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Damaged, NotFound, Stopped
from surefoot.store import generation_journal

MOST = 200_000


class Line(Struct, frozen=True):
    name: str
    generations: Sequence[Generation]
    uses: int
    """What a load takes; 0: none can be trusted."""
    why: str


async def show(request: Request) -> Page:
    found = await request.look(read)
    return Page("checkpoints.html", {"here": "checkpoints", "found": found, "recorded": None})


async def one(request: Request) -> Page:
    name = request.ids["name"]
    line = await request.look(read_one, name)
    a, b = request.query.get("a", ""), request.query.get("b", "")
    numbers = [one.number for one in line.generations if one.valid]
    left = int(a) if a.isdecimal() and int(a) in numbers else (numbers[-2:-1] or [0])[0]
    right = int(b) if b.isdecimal() and int(b) in numbers else (numbers[-1:] or [0])[0]
    lines = await request.look(differ, name, left, right) if left and right else []
    chain = drawing.chain(
        [(str(one.number), "whole" if one.valid else "broken") for one in line.generations],
        f"{len(line.generations)} generations",
    )
    return Page(
        "checkpoint.html",
        {
            "here": "checkpoints",
            "line": line,
            "lines": lines,
            "a": left,
            "b": right,
            "numbers": numbers,
            "chain": chain,
            "recorded": None,
        },
    )


def read(runtime: Runtime) -> list[Line]:
    return [_line(runtime, name) for name in generation_journal.checkpoints(runtime.store.names(""))]


def read_one(runtime: Runtime, name: str) -> Line:
    if name not in generation_journal.checkpoints(runtime.store.names("")):
        raise NotFound(f"there is no checkpoint {name!r} in {runtime.store.url}")
    return _line(runtime, name)


def _line(runtime: Runtime, name: str) -> Line:
    try:
        found = Checkpoint(name, store=runtime.store.url).generations()
    except (Damaged, Stopped) as error:
        return Line(name, (), 0, error.summary)
    valid = [one.number for one in found if one.valid]
    return Line(name, found, valid[-1] if valid else 0, "")


def differ(runtime: Runtime, name: str, a: int, b: int) -> list[DiffLine]:
    return diff(_state(runtime, name, a), _state(runtime, name, b))


def _state(runtime: Runtime, name: str, number: int) -> str:
    checkpoint = Checkpoint(name, store=runtime.store.url)
    shelf = checkpoint._shelf(create=False)
    found = None if shelf is None else checkpoint._look(shelf)
    if shelf is None or found is None:
        return ""
    seen = next((one for one in found.seen if one.number == number), None)
    if seen is None or seen.size > MOST:
        return ""
    return json.dumps(json.loads(bytes(shelf.state(seen))), indent=2, ensure_ascii=False, sort_keys=True)
