"""`start.run_blocking` for tasks."""

from __future__ import annotations

from typing import Any

from surefoot.engine.declare.plan import Options, Plan
from surefoot.engine.drive import acts_async, perform_async
from surefoot.engine.drive.start import Found, Start
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.process.whereabouts import at


async def run_async(runtime: Runtime, plan: Plan, run: str, options: Options, found: Found = None) -> Any:
    await acts_async.admitted(runtime)
    with at(runtime.store.url):
        return await perform_async.run(Start(runtime, plan, run, options, found).loop())
