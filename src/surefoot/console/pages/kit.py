"""Every component on one page, for whoever works on them. It exists only where it is asked for (`--debug`)."""

from __future__ import annotations

from surefoot.console.context import Page, Request
from surefoot.console.pages import kinds
from surefoot.console.pages.parts import Column, Line, Row, b, code, say
from surefoot.errors import NotFound


async def show(request: Request) -> Page:
    if not getattr(request.console.options, "debug", False):
        raise NotFound("there is no such page")
    marks = [
        *kinds.OF_NEED.values(),
        *(kinds.of_status(one) for one in ("running", "sleeping", "queued", "done", "cancelled")),
    ]
    rows = [
        Row("vendor", "Nordlicht Druck KG"),
        Row("cents", 248000),
        Row("notes", "one\ntwo"),
        Row("key", "10bd11ce", mono=True),
        Row("nested", {"a": [1, {"b": None}], "ok": True}),
    ]
    lines = [
        Line("book", say("Recorded as the result. ", b("Nothing is executed."))),
        Line("warn", say("It may happen twice."), warn=True),
        Line("next", say("Next: ", code("notify#1"))),
    ]
    columns = [
        Column("9", say("calls stay")),
        Column("4", say("steps run again"), ["extract#1", "match#2"]),
        Column("3", say("effects in doubt"), ["pay#1"], "doubt"),
    ]
    return Page(
        "_kit.html", {"here": "", "marks": marks, "rows": rows, "lines": lines, "columns": columns, "recorded": None}
    )
