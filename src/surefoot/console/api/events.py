"""Server-sent events: that something has changed. Whoever gets one asks for the thing itself."""

from __future__ import annotations

from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from surefoot.console.context import Request
from surefoot.console.live import Full

TOO_MANY: Final = "So many streams are open already. Close one."


async def stream(request: Request) -> Response:
    live = request.console.live
    await run_in_threadpool(lambda: request.runtime)  # A store that is away is said now, not by a silent stream.
    try:
        listener = live.open(request.principal.name, request.query.get("run", ""))
    except Full:
        return PlainTextResponse(f"{TOO_MANY}\n", 429)
    return StreamingResponse(live.stream(listener), media_type="text/event-stream")
