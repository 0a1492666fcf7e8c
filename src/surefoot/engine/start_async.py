"""Performs the loop of `start.py` in a task."""

from __future__ import annotations

import asyncio
from typing import Any

from surefoot.engine import drive_async
from surefoot.engine.pasting import at
from surefoot.engine.plan import Options, Plan
from surefoot.engine.runtime import Runtime
from surefoot.engine.start import Claim, Do, Found, Invoke, Loop, Nap, Start, T, Write


async def run_async(runtime: Runtime, plan: Plan, run: str, options: Options, found: Found = None) -> Any:
    with at(runtime.store.url):
        return await carry_out(Start(runtime, plan, run, options, found).loop())


async def carry_out(loop: Loop[T]) -> T:
    reply: Any = None
    error: BaseException | None = None
    try:
        while True:
            wish = loop.send(reply) if error is None else loop.throw(error)
            reply, error = None, None
            try:
                reply = await _perform(wish)
            except BaseException as failure:  # noqa: BLE001 - the loop decides
                error = failure
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def _perform(wish: Any) -> Any:
    match wish:
        case Invoke(session, fn):
            return await drive_async.invoke(session, fn)
        case Do(fn):
            return await drive_async.hop(fn)
        case Nap(length):
            return await asyncio.sleep(length)
        case Claim(session, created):
            return await drive_async.claim(session, created)
        case Write(session, append):
            return await drive_async.append(session, append.entry)
        case _:
            raise AssertionError(wish)
