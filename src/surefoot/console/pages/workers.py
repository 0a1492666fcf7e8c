"""Who is alive, what each serves and drives, and what waits in the queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from surefoot.console.context import Page, Request
from surefoot.engine.process.runtime import Runtime
from surefoot.store.contract import RunQuery, WorkerSeen

MOST = 500


class Living(Struct, frozen=True):
    seen: WorkerSeen
    drives: Sequence[str]


class Queue(Struct, frozen=True):
    name: str
    waiting: int
    oldest: int
    next_due: int
    running: int
    served: bool


class Read(Struct, frozen=True):
    living: Sequence[Living]
    queues: Sequence[Queue]
    unserved: Sequence[str]
    """Workflows that wait in a queue, and nobody serves them."""


async def show(request: Request) -> Page:
    values: dict[str, Any] = {"here": "workers", "found": await request.look(read), "recorded": None}
    values["live"] = request.link("api", "v1", "events")
    return Page("workers.html", values)


def read(runtime: Runtime) -> Read:
    now, workers = runtime.clock.now(), runtime.store.workers()
    queued = [one.row for one in runtime.store.runs(RunQuery(status="queued", limit=MOST)) if one.row is not None]
    claimed = [one.row for one in runtime.store.runs(RunQuery(claimed=True, limit=MOST)) if one.row is not None]
    living = [Living(one, [row.run for row in claimed if row.worker == one.worker]) for one in workers]
    served = {name for one in workers if one.serving is not None for name in one.serving.workflows}
    queues = []
    for name in sorted({row.queue for row in queued} | {row.queue for row in claimed if row.queue}):
        mine = [row for row in queued if row.queue == name]
        ready = [row for row in mine if row.wake is None or row.wake <= now]
        later = [row.wake for row in mine if row.wake is not None and row.wake > now]
        takes = any(
            one.serving is not None and (not one.serving.queues or name in one.serving.queues) for one in workers
        )
        queues.append(
            Queue(
                name,
                len(ready),
                min((row.created for row in ready), default=0),
                min(later, default=0),
                sum(row.queue == name for row in claimed),
                takes,
            )
        )
    ready_now = {row.workflow for row in queued if row.wake is None or row.wake <= now}
    return Read(living, queues, sorted(ready_now - served))
