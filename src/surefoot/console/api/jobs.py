"""What takes longer: begun by a POST, looked at by its id."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from surefoot.console import refusals
from surefoot.console.context import Request
from surefoot.console.jobs import DOCTOR, VERIFY
from surefoot.errors import NotFound
from surefoot.view import facts


async def verify(request: Request) -> Response:
    return await _begin(request, VERIFY)


async def doctor(request: Request) -> Response:
    return await _begin(request, DOCTOR)


async def _begin(request: Request, what: str) -> Response:
    job = await run_in_threadpool(request.console.jobs.start, what, request.principal.name)
    return refusals.as_json(facts.begun(job.id), 202)


async def show(request: Request) -> Response:
    job = request.console.jobs.get(request.ids["job"])
    if job is None:
        raise NotFound("there is no such job: the console has been started anew, or it was long ago")
    return refusals.as_json(facts.job(job))
