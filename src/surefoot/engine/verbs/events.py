"""Sending an event to another run: idempotent, so a repeated sending is the same event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surefoot.engine.declare import current, rehearsal
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.drive import perform
from surefoot.engine.operate.handle import Run
from surefoot.engine.process import config
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.verbs import blocking
from surefoot.errors import UsageError


def deliver(run_id: str, name: str, value: Any, store: str | None = None) -> None:
    """The effect behind `send_event` inside a run: its key is the event's id."""
    here = current.require_place("send_event").session.runtime
    runtime = here if store is None else config.runtime(store, create=False)
    Run(runtime, run_id).send_event(name, value, id=blocking.key(), by=f"run {blocking.run_id()}")


def delivered_by(fn: Callable[..., Any]) -> CallSpec:
    return CallSpec(fn, "effect", name="send_event", on_crash="retry", not_done=UsageError)


SEND = delivered_by(deliver)


def send_event(run_id: str, name: str, value: Any = None, *, store: str | None = None) -> None:
    """Deliver an event to a run; `sf.wait_event(name)` there gets the value."""
    place = current.get()
    if place is None or place is current.OUTSIDE:
        rehearsal.would_do("send_event outside of the run", run_id)
        runtime: Runtime = config.runtime(store, create=False)
        Run(runtime, run_id).send_event(name, value, id=str(runtime.clock.uuid4()))
    else:
        blocking.require_no_secret(current.require_blocking("send_event").session, name)
        perform.call(SEND, (run_id, name, value), {} if store is None else {"store": store})
