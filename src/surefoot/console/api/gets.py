"""What can be asked for. Nothing here writes."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from msgspec import Raw
from starlette.responses import Response

from surefoot.console import listings, lists, reads, refusals
from surefoot.console.context import Request
from surefoot.core.entry import Kept
from surefoot.core.seal import from_record
from surefoot.core.state import RunState
from surefoot.engine.operate import audit as audits
from surefoot.engine.operate.comparison import compare
from surefoot.engine.operate.handle import Seen, journal_entry
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import NotFound, UsageError
from surefoot.store.contract import Head
from surefoot.store.pages import NEWEST
from surefoot.view import facts, page
from surefoot.view import inbox as inboxes
from surefoot.view import lanes as pictures
from surefoot.view.facts import Facts

LIMIT: Final = 50
MOST: Final = 1_000


def number(request: Request, name: str, usual: int, most: int = 2**62) -> int:
    given = request.query.get(name, "")
    if not given:
        return usual
    if not (given.isascii() and given.isdecimal() and len(given) < 20 and 0 <= int(given) <= most):
        raise UsageError(f"{name}={given[:40]!r} is no whole number from 0 to {most}")
    return int(given)


def limit(request: Request) -> int:
    return max(number(request, "limit", LIMIT, MOST), 1)


async def inbox(request: Request) -> Response:
    kinds, cursor, many = request.query.getlist("kind"), request.query.get("cursor", ""), limit(request)
    if unknown := set(kinds) - set(inboxes.KINDS):
        raise UsageError(f"kind={', '.join(sorted(unknown))} is none of {', '.join(inboxes.KINDS)}")
    found = await request.look(lists.inbox, kinds=kinds, cursor=cursor, limit=many)
    return refusals.as_json(facts.inbox(found))


async def runs(request: Request) -> Response:
    found = await request.look(listings.runs, lists.query(request.query, limit(request)))
    return refusals.as_json(facts.runs(found.runs, following=found.following))


async def run(request: Request) -> Response:
    console, named = request.console, request.ids["run"]

    def read(runtime: Runtime) -> Facts:
        found = reads.open_run(runtime, named)
        return facts.run(reads.page_of(found, where=console.where, app=console.app_named), found.seen)

    return refusals.as_json(await request.look(read))


async def calls(request: Request) -> Response:
    """A window of them, by the order in which they were first recorded."""
    console, named = request.console, request.ids["run"]
    after, many = number(request, "after", 0), limit(request)

    def read(runtime: Runtime) -> Facts:
        found = reads.open_run(runtime, named)
        told = facts.run(reads.page_of(found, where=console.where, app=console.app_named), found.seen)
        return facts.calls(told, after, many)

    return refusals.as_json(await request.look(read))


async def call(request: Request) -> Response:
    named, address = request.ids["run"], request.ids["address"]
    return refusals.as_json(
        await request.look(lambda runtime: reads.call_of(reads.open_run(runtime, named), address)[1])
    )


async def lanes(request: Request) -> Response:
    named, first, last = request.ids["run"], number(request, "from", 0), number(request, "to", 0)

    def read(runtime: Runtime) -> Facts:
        found = reads.open_run(runtime, named)
        _, driven = reads.look(found)
        drawn = pictures.timeline(found.story(), driven=driven, now=runtime.clock.now(), first=first, last=last)
        return facts.lanes(drawn)

    return refusals.as_json(await request.look(read))


async def entries(request: Request) -> Response:
    """In order; behind `after`."""
    named, after, many = request.ids["run"], number(request, "after", 0), limit(request)

    def read(runtime: Runtime) -> Facts:
        found = [one for one in reads.open_run(runtime, named)._records() if one.seq > after]
        return facts.entries(map(journal_entry, found[:many]), more=len(found) > many)

    return refusals.as_json(await request.look(read))


async def value(request: Request) -> Response:
    """One recorded value, whole, as a file: a browser shows nothing of it."""
    named, field = request.ids["run"], request.ids["field"]
    seq = _seq(request.ids["seq"])

    def read(runtime: Runtime) -> bytes:
        found = reads.open_run(runtime, named)
        record = next((one for one in found._records() if one.seq == seq), None)
        given: Any = None if record is None else getattr(from_record(record), field, None)
        if given is None or field.startswith("_") or not isinstance(given, Kept | Raw):
            raise NotFound(f"run {named}: entry {seq} has no value {field!r}")
        return bytes(found.whole(given))

    content = await request.look(read)
    return Response(
        content,
        media_type="application/octet-stream",
        headers={"Content-Disposition": 'attachment; filename="value.json"'},
    )


def _seq(given: str) -> int:
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise NotFound(f"there is no entry {given[:40]!r}")
    return int(given)


async def at(request: Request) -> Response:
    """The run as it was after an entry."""
    console, named, seq = request.console, request.ids["run"], _seq(request.ids["seq"])

    def read(runtime: Runtime) -> Facts:
        found = reads.open_run(runtime, named)
        records = [one for one in found._records() if one.seq <= seq]
        if not records or records[-1].seq != seq:
            raise NotFound(f"run {named} has no entry {seq}")
        then = RunState(named)
        for record in records:
            then.fold(record)
        shown = page.page(
            then, driven=False, now=records[-1].at, where=console.where, app=console.app_named, whole=found.whole
        )
        return facts.run(shown, Seen.at(Head(records[-1].seq, records[-1].seal)))

    return refusals.as_json(await request.look(read))


async def world(request: Request) -> Response:
    named = request.ids["run"]
    return refusals.as_json(await request.look(lambda runtime: facts.world(reads.open_run(runtime, named).state())))


async def diff(request: Request) -> Response:
    a, b = request.query.get("a", ""), request.query.get("b", "")

    def read(runtime: Runtime) -> Facts:
        return facts.comparison(a, b, compare(reads.open_run(runtime, a).state(), reads.open_run(runtime, b).state()))

    return refusals.as_json(await request.look(read))


async def workers(request: Request) -> Response:
    return refusals.as_json(await request.look(lambda runtime: facts.workers(runtime.store.workers())))


async def audit(request: Request) -> Response:
    """Newest first. `verb` is the kind of an entry: `EffectSettled`; `before`: the position of the last line seen."""
    who, verbs, many = request.query.get("who", ""), request.query.getlist("verb"), limit(request)
    before = number(request, "before", NEWEST)

    def read(runtime: Runtime) -> Facts:
        return facts.audit(islice(audits.said(runtime, before=before, who=who, kinds=verbs), many))

    return refusals.as_json(await request.look(read))


async def store(request: Request) -> Response:
    return refusals.as_json(await request.look(lists.store))
