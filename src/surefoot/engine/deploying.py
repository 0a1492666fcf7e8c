"""While a new version is rolled out, workers with old and with new code serve one queue.

A run that today's code here cannot go on with may be one for the code of another worker: it is let go of, untouched, as
long as such a one lives and serves it, for at most ten minutes. Only then is it stopped, and a person asked.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from surefoot.core.entry import Stop
from surefoot.core.state import STOPPED, RunState
from surefoot.store.contract import Store, WorkerSeen

PATIENCE_SECONDS: Final = 600.0
"""So long a rollout may take. What nobody could go on with by then needs a person."""
CODE_STOPS: Final = frozenset({"CodeChanged", "SchemaMismatch"})
"""Stops that other code may not meet."""
_since: dict[tuple[bytes, str], float] = {}
_lock = threading.Lock()


def may_be_served_elsewhere(store: Store, state: RunState, code: str) -> bool:
    """Whether a living worker with other code serves this run, and has not had ten minutes to take it up yet.

    `code`: the digest of the code here (`code.digest()`).
    """
    created = state.created
    if created is None or not any(
        _serves(other, created.workflow, created.queue) and other.serving is not None and other.serving.code != code
        for other in store.workers()
        if other.worker != store.worker
    ):
        forget(store, state.run)
        return False
    with _lock:
        first = _since.setdefault((store.id, state.run), time.monotonic())
    return time.monotonic() - first < PATIENCE_SECONDS


def forget(store: Store, run: str) -> None:
    """It went on, or was stopped: the next time counts anew."""
    with _lock:
        _since.pop((store.id, run), None)


def _serves(worker: WorkerSeen, workflow: str, queue: str) -> bool:
    serving = worker.serving
    return serving is not None and workflow in serving.workflows and (not serving.queues or queue in serving.queues)


def is_about_code(stops: tuple[Stop, ...] | list[Stop]) -> bool:
    """Whether nothing but the code stands in the way."""
    return bool(stops) and all(stop.reason in CODE_STOPS for stop in stops)


def stands_at_code(state: RunState) -> bool:
    """Whether the run is stopped for its code, so that other code may go on with it."""
    return state.status == STOPPED and is_about_code(state.stops) and state.claimant is None
