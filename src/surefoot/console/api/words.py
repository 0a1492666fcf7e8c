"""What can be said of a run, and what would follow, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from surefoot.console import refusals, saying
from surefoot.console.context import Request
from surefoot.engine.operate.handle import Seen
from surefoot.errors import UsageError
from surefoot.view import facts


def body(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        raise UsageError("the body is not JSON") from None
    if not isinstance(found, dict):
        raise UsageError("the body is no JSON object")
    return found


def seen_in(given: Any) -> Seen | None:
    if given is None:
        return None
    try:
        return msgspec.convert(given, Seen)
    except msgspec.ValidationError as error:
        raise UsageError(f"seen: {error}") from None


async def plan(request: Request) -> Response:
    supposing = body(request).get("supposing")
    if supposing is not None and not isinstance(supposing, dict):
        raise UsageError("supposing: an object, as for actions")
    run = request.ids["run"]
    found = await (request.plan(run) if supposing is None else request.suppose(run, supposing))
    if found.error is not None:
        return refusals.as_json(facts.failure(facts.passed_on(found.error)), found.status)
    if found.plan is None:
        return refusals.as_json(facts.failure(facts.turned_away("Unknown", found.unknown, run=run)), 503)
    return refusals.as_json(facts.planned(found.plan, found.supposed, found.seen))


async def say(request: Request) -> Response:
    given = body(request)
    note, seen, key = (
        given.pop("note", ""),
        seen_in(given.pop("seen", None)),
        request.http.headers.get("idempotency-key", ""),
    )
    if not isinstance(note, str):
        raise UsageError("note: a text")
    run = request.ids["run"]
    recorded = await run_in_threadpool(lambda: saying.record(request, run, given, note=note, seen=seen, key=key))
    return refusals.as_json(recorded.told)
