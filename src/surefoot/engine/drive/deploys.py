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
from surefoot.core.timer import MICROS
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
    if not _is_served_elsewhere(store, state, code):
        forget(store, state.run)
        return False
    with _lock:
        first = _since.setdefault((store.id, state.run), time.monotonic())
    return time.monotonic() - first < PATIENCE_SECONDS


def tries_first(store: Store, state: RunState, code: str, now: int) -> bool:
    """Whether a run that was handed out or taken up, and got nowhere, is looked through before it is claimed.

    Only if it was last taken up by other code, which still serves it: then the code here may be the wrong one, and the run is
    left untouched. And for ten minutes at most since then: should its code kill every worker that looks through it, nobody
    would know, so from then on it is claimed first, as it is by the code that took it up before.
    """
    taken_up = max(state.adoptions[-1] if state.adoptions else 0, state.standing.wake or 0)
    is_new_here = state.code != code and now - taken_up < PATIENCE_SECONDS * MICROS
    return is_new_here and _is_served_elsewhere(store, state, code)


def _is_served_elsewhere(store: Store, state: RunState, code: str) -> bool:
    created = state.created
    others = [] if created is None else [other for other in store.workers() if other.worker != store.worker]
    return created is not None and any(
        _serves(other, created.workflow, created.queue) and other.serving is not None and other.serving.code != code
        for other in others
    )


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
