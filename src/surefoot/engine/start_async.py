"""Performs the loop of `start.py` in a task."""

from __future__ import annotations

import asyncio
from typing import Any

from surefoot.engine import drive_async
from surefoot.engine.runtime import Runtime
from surefoot.engine.start import Claim, Do, Invoke, Loop, Nap, Options, Plan, Write, running
from surefoot.engine.whereabouts import at


async def run_async(runtime: Runtime, plan: Plan, run: str, options: Options) -> Any:
    with at(runtime.store.url):
        return await carry_out(running(runtime, plan, run, options))


async def carry_out(loop: Loop) -> Any:
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
        return end.value


async def _perform(wish: Any) -> Any:
    match wish:
        case Invoke(session, fn):
            return await drive_async.invoke(session, fn)
        case Do(fn):
            return await drive_async.hop(fn)
        case Nap(length):
            return await asyncio.sleep(length)
        case Claim(session, created):
            return await drive_async.claim(session, session.claim(created))
        case Write(session, append):
            await drive_async.go_live(session)
            return await drive_async.append(session, append.entry)
        case _:
            raise AssertionError(wish)
