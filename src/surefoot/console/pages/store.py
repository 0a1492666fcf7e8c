"""How the store is: what a verification found, each damaged journal as a chain, what the doctor says, and what fell back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from starlette.concurrency import run_in_threadpool

from surefoot.console import drawing, lists
from surefoot.console.context import Page, Request
from surefoot.console.jobs import DOCTOR, VERIFY
from surefoot.core.need import DAMAGE, FELL_BACK
from surefoot.engine.process.runtime import Runtime
from surefoot.store.contract import IndexRow, RunQuery
from surefoot.store.rules import is_run
from surefoot.view.facts import error

_MOST: Final = 20


class Flaw(Struct, frozen=True):
    journal: str
    is_run: bool
    message: str
    chain: Any


class Read(Struct, frozen=True):
    store: dict[str, Any]
    fallbacks: Sequence[IndexRow]
    damaged: int


async def show(request: Request) -> Page:
    refused = await run_in_threadpool(request.console.refused)
    if refused is not None:
        return Page("store_refused.html", {"here": "store", "error": error(refused), "recorded": None})
    found = await request.look(read)
    jobs = request.console.jobs
    verified, examined = jobs.newest(VERIFY), jobs.newest(DOCTOR)
    going = jobs.get(request.query.get("job", "")) if request.query.get("job") else None
    result = verified.result if verified is not None and verified.result is not None else None
    flaws = [_flaw(one) for one in (result or {}).get("damaged", [])]
    values: dict[str, Any] = {
        "here": "store", "found": found, "verified": verified, "result": result, "flaws": flaws, "examined": examined,
        "findings": (examined.result or {}).get("findings", []) if examined else [],
        "going": going if going is not None and not going.ended else None, "may": request.may("admin"), "recorded": None,
        "live": request.link("api", "v1", "events"),
    }  # fmt: skip
    return Page("store.html", values)


def read(runtime: Runtime) -> Read:
    fallbacks = [one.row for one in runtime.store.runs(RunQuery(need=FELL_BACK, limit=_MOST)) if one.row is not None]
    every = [one.row for one in runtime.store.runs(RunQuery(limit=500)) if one.row is not None]
    known = {row.run for row in fallbacks}
    fallbacks += [row for row in every if "fell_back" in row.marks and row.run not in known]
    damaged = sum(one.row is None for one in runtime.store.runs(RunQuery(limit=_MOST))) + len(
        runtime.store.runs(RunQuery(need=DAMAGE, limit=_MOST))
    )
    return Read(dict(lists.store(runtime)), fallbacks, damaged)


def _flaw(one: dict[str, Any]) -> Flaw:
    entries, first = one.get("entries"), one.get("entry")
    chain = None
    if first:
        count = max(entries or first, first)
        boxes = [
            (str(n), "whole" if n <= one["valid"] else "broken" if n == first else "unread")
            for n in range(1, count + 1)
        ]
        chain = drawing.chain(boxes, f"Entry {first} of {count} is damaged")
    return Flaw(one["journal"], bool(one["journal"]) and is_run(one["journal"]), one["message"], chain)
