"""The list of runs: segments with counts, one box for what is looked for, pages by key. The index finds, the journal is believed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.console import listings, lists, reads
from surefoot.console.context import Page, Request
from surefoot.console.pages import kinds
from surefoot.console.pages.inbox import damaged
from surefoot.console.pages.parts import Kind
from surefoot.console.principals import VIEW
from surefoot.core import need
from surefoot.core.address import split
from surefoot.core.entry import Progressed
from surefoot.core.seal import from_record
from surefoot.core.state import STATUSES
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Damaged
from surefoot.store.contract import ANY, RESERVED, IndexRow, RunQuery
from surefoot.view import listing

SIZE: Final = 50
VIEWS: Final = ("all", "need", "moving", "failed", "done")
WORDS: Final = {"all": "All", "need": "Need you", "moving": "Moving", "failed": "Failed", "done": "Done"}
_STATUSES: Final[dict[str, tuple[str, ...]]] = {
    "need": ("stopped", "waiting"), "moving": ("running", "sleeping", "queued"), "failed": ("failed",), "done": ("done", "cancelled"),
}  # fmt: skip
_LOOKED_FOR: Final[dict[str, tuple[str, ...]]] = _STATUSES | {"need": listings.MAY_NEED_A_PERSON}
"""Where the runs of a view are: one that is cut off is not stopped, and needs a person all the same."""
NAMES: Final = ("id", "workflow", "label", "queue", "status", "need")
_NEAR: Final = 64


class Chip(Struct, frozen=True):
    text: str
    without: str
    """The page without it."""


class Row(Struct, frozen=True):
    run: str
    workflow: str
    kind: Kind
    why: str
    part: str
    """How far it is, as a percentage; empty: it does not say."""
    calls: int
    newest: int
    created: int
    marks: Sequence[str]


class Found(Struct, frozen=True):
    rows: Sequence[Row]
    next: str


async def show(request: Request) -> Page:
    wanted, wrong = parsed(request.query.get("q", ""))
    view = request.query.get("view", "all")
    view = view if view in VIEWS else "all"
    before = request.query.get("before", "")
    found = await request.look(read, view, tuple(wanted), before, glance=not request.may(VIEW))
    counts = await request.look(counted)
    values: dict[str, Any] = {
        "here": "runs",
        "found": found,
        "views": [
            (name, WORDS[name], counts[name], request.here(view=name if name != "all" else None, before=None))
            for name in VIEWS
        ],
        "view": view,
        "chips": [
            Chip(
                f"{name}:{value}" if name != "id" else f"id begins with {value}",
                request.here(q=_text([one for one in wanted if one != (name, value)]) or None, before=None),
            )
            for name, value in wanted
        ],
        "query": _text(wanted),
        "wrong": wrong,
        "live": request.link("api", "v1", "events"),
        "recorded": None,
    }
    return Page("runs.html", values)


def parsed(text: str) -> tuple[list[tuple[str, str]], str]:
    """The words of the box: `workflow:pay status:done label:team=news`; a bare word is how an id begins."""
    try:
        parts = shlex.split(text)
    except ValueError:
        parts = text.split()
    found, wrong = [], ""
    for part in parts[:12]:
        name, colon, value = part.partition(":")
        if not colon or name not in NAMES:
            found.append(("id", part))
        elif name == "status" and value not in STATUSES:
            wrong = f"{value} is no status: {', '.join(STATUSES)}"
        elif name == "need" and value not in (*need.KINDS, ANY):
            wrong = f"{value} is nothing that a run can need: {', '.join(need.KINDS)}"
        elif name == "label" and "=" not in value:
            wrong = f"label:{value}: write label:NAME=VALUE"
        else:
            found.append((name, value))
    return found, wrong


def _text(wanted: Sequence[tuple[str, str]]) -> str:
    return " ".join(shlex.quote(value if name == "id" else f"{name}:{value}") for name, value in wanted)


def counted(runtime: Runtime) -> dict[str, int]:
    tally = lists.tally(runtime)
    by_status: dict[str, int] = {}
    for (status, _), count in tally.items():
        by_status[status] = by_status.get(status, 0) + count
    return {"all": sum(by_status.values())} | {
        name: sum(by_status.get(one, 0) for one in statuses) for name, statuses in _STATUSES.items()
    }


def read(runtime: Runtime, view: str, wanted: tuple[tuple[str, str], ...], before: str, *, glance: bool) -> Found:
    given = dict(wanted)
    labels = dict(value.partition("=")[::2] for name, value in wanted if name == "label")
    query = RunQuery(
        given.get("status"), given.get("workflow"), labels, SIZE + 1, given.get("need"), given.get("queue"), before
    )
    prefix = given.get("id", "")
    if prefix:
        seen = [one for one in _by_prefix(runtime, query, prefix) if _is_in(view, one[0])]
        page, following = seen[:SIZE], seen[SIZE - 1][0].run if len(seen) > SIZE else ""
    else:
        page, following = _page(runtime, query, view)
    return Found([_row(runtime, one, row, glance=glance) for one, row in page], following)


Pair = tuple[listing.Seen, IndexRow | None]


def _page(runtime: Runtime, query: RunQuery, view: str) -> tuple[list[Pair], str]:
    """A page, and the run behind which the next one begins. Pages are cut by age, so that each run is on one of them; what
    needs a person comes first within its page. Runs without a readable entry have no age: they are on the first page.
    """
    statuses: Sequence[str | None] = (query.status,) if query.status or view == "all" else _LOOKED_FOR[view]
    found: dict[str, Pair] = {}
    reached: list[listing.Seen] = []
    for status in statuses:
        pairs = [pair for pair in reads.runs(runtime, replace(query, status=status)).runs if pair[0].created]
        if len(pairs) >= query.limit:  # There are older ones: nothing can be said of what is older than these.
            reached.append(_newest(pairs)[query.limit - 1][0])
        found |= {one.run: (one, row) for one, row in pairs if query.status or _is_in(view, one)}
    floor = max(reached, key=lambda one: one.created, default=None)
    known = _newest([pair for pair in found.values() if floor is None or pair[0].created >= floor.created])
    page = known[:SIZE]
    following = page[-1][0].run if len(known) > SIZE else floor.run if floor is not None else ""
    broken = [] if query.before else [pair for pair in reads.runs(runtime, query).runs if not pair[0].created]
    if view in ("all", "need"):
        page.sort(key=lambda pair: (pair[0].stands.rank, -pair[0].created, pair[0].run))
    return [*broken, *page], following


def _newest(pairs: Sequence[Pair]) -> list[Pair]:
    return sorted(pairs, key=lambda pair: (-pair[0].created, pair[0].run))


def _by_prefix(runtime: Runtime, query: RunQuery, prefix: str) -> list[Pair]:
    """Ids are few that begin alike: they are found by name, and each of them is read."""
    names = sorted(name for name in runtime.store.names(prefix) if not name.startswith(RESERVED))
    found = listings.named(runtime, names[: SIZE * 4], query).runs
    before = next((one.created for one, _ in found if one.run == query.before), None)
    return sorted(
        (pair for pair in found if before is None or pair[0].created < before), key=lambda pair: -pair[0].created
    )


def _is_in(view: str, one: listing.Seen) -> bool:
    return view == "all" or (one.stands.needs_a_person if view == "need" else one.status in _STATUSES[view])


def _row(runtime: Runtime, one: listing.Seen, row: IndexRow | None, *, glance: bool) -> Row:
    wait = one.stands.wait
    kind = kinds.of_status(one.stands.status, row.need if row else "")
    if wait is not None and one.stands.status == "queued":
        kind = kinds.of_status("queued")
    if one.stands.status == "stopped" and row is not None and row.need == need.EVENT:
        kind = kinds.OF_NEED[need.EVENT]
    why = "" if glance else _why(one, row)
    newest, part, progress, calls = _near_the_end(runtime, one.run)
    marks = [
        word
        for mark, word in (("fell_back", "fell back"), ("left", "left effects"), ("forked", "fork"))
        if row and mark in row.marks
    ]
    return Row(
        one.run,
        one.workflow,
        kind,
        why or ("" if glance else progress),
        part if not why else "",
        calls,
        newest,
        one.created,
        marks,
    )


def _why(one: listing.Seen, row: IndexRow | None) -> str:
    how = one.stands
    if how.wait is not None:
        return str(how.wait)
    if how.damage:
        return damaged(how.damage) or how.damage
    if how.status in ("stopped", "waiting") and row is not None and row.need in _SAYS:
        return _SAYS[row.need].format(name=split(row.address)[1] if row.address else "it")
    if how.status in ("stopped", "waiting") and row is not None and row.brief:
        brief = row.brief
        return brief.partition(": ")[2] if row.need in (need.QUESTION, need.EVENT) and ": " in brief else brief
    return how.brief


_SAYS: Final = {
    need.IN_DOUBT: "Did {name} happen?",
    need.DRIFT: "The world is not as it was left",
    need.CODE_CHANGED: "The code no longer matches the journal, at {name}",
    need.QUARANTINED: "It took its process down again and again",
}


def _near_the_end(runtime: Runtime, run: str) -> tuple[int, str, str, int]:
    """The newest entry, how far the run says it is, and its number of entries: from the last few entries at most."""
    try:
        head = runtime.store.read(run, 2**62).head
        if head is None:
            return 0, "", "", 0
        records = runtime.store.read(run, max(head.seq - _NEAR, 0)).records
        newest = records[-1].at if records else 0
        for record in reversed(records):
            entry = from_record(record)
            if isinstance(entry, Progressed):
                total = entry.total or 0
                part = f"{min(max(entry.done / total, 0.0), 1.0) * 100:.1f}%" if total else ""
                of = f" of {total:g}" if total else ""
                return newest, part, f"{entry.done:g}{of}{': ' + entry.note if entry.note else ''}", head.seq
    except Damaged:
        return 0, "", "", 0
    return newest, "", "", head.seq
