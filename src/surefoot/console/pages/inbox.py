"""What waits for a person."""

from __future__ import annotations

from surefoot.console.context import Page, Request
from surefoot.engine.operate.inbox import waiting
from surefoot.engine.process.runtime import Runtime
from surefoot.view import inbox

LIMIT = 50


async def show(request: Request) -> Page:
    return Page("inbox.html", {"page": await request.look(read, request.query.get("cursor", ""))})


def read(runtime: Runtime, cursor: str) -> inbox.Page:
    return inbox.page(waiting(runtime, cursor), runtime.store.workers(), now=runtime.clock.now(), limit=LIMIT)
