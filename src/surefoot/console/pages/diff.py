"""Two runs side by side, call by call: what is the same, what differs and how, and what only one of them has."""

from __future__ import annotations

from surefoot.console import reads
from surefoot.console.context import Page, Request
from surefoot.engine.operate.comparison import Comparison, compare
from surefoot.engine.process.runtime import Runtime
from surefoot.view import facts


async def show(request: Request) -> Page:
    a, b = request.query.get("a", ""), request.query.get("b", "")
    found = await request.look(read, a, b) if a and b else None
    told = facts.comparison(a, b, found) if found is not None else None
    shown = [one for one in told["calls"] if one["verdict"] != "same" or "all" in request.query] if told else []
    return Page("diff.html", {"here": "runs", "a": a, "b": b, "told": told, "shown": shown, "recorded": None})


def read(runtime: Runtime, a: str, b: str) -> Comparison:
    return compare(reads.open_run(runtime, a).state(), reads.open_run(runtime, b).state())
