"""The buttons of the store's page."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from surefoot.console.context import Request
from surefoot.console.jobs import DOCTOR, VERIFY


async def verify(request: Request) -> Response:
    return await _begin(request, VERIFY)


async def doctor(request: Request) -> Response:
    return await _begin(request, DOCTOR)


async def _begin(request: Request, what: str) -> Response:
    job = await run_in_threadpool(request.console.jobs.start, what, request.principal.name)
    parts = urlsplit(request.inside(request.form.get("then", "")) or "/store")
    words = urlencode([*parse_qsl(parts.query), ("job", job.id)])
    return RedirectResponse(f"{request.mount}{parts.path}?{words}", 303)
