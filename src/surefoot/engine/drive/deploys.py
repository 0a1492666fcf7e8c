"""While a new version is rolled out, workers with old and with new code serve one queue.

The code here may be unable to go on with a run, while the code of another worker can. So the run is released,
untouched, while such a worker is alive and serves it, for at most ten minutes. After that it is stopped, and a person
is asked.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from surefoot.core.entry import Stop
from surefoot.core.state import STOPPED, RunState
from surefoot.core.timer import MICROS
from surefoot.store.contract import Store

PATIENCE_SECONDS: Final = 600.0
"""The time that a rollout may take. A run that no worker could go on with by then needs a person."""
CODE_STOPS: Final = frozenset({"CodeChanged", "SchemaMismatch"})
"""Stops that may not occur with other code."""
_since: dict[tuple[bytes, str], float] = {}
_lock = threading.Lock()


def may_be_served_elsewhere(store: Store, state: RunState, code: str) -> bool:
    """Whether a living worker with other code serves this run, and has had less than ten minutes to take it up.

    `code`: the digest of the code here (`code.digest()`).
    """
    if not _is_served_elsewhere(store, state, code):
        forget(store, state.run)
        return False
    with _lock:
        first = _since.setdefault((store.id, state.run), time.monotonic())
    return time.monotonic() - first < PATIENCE_SECONDS


def tries_first(store: Store, state: RunState, code: str, now: int) -> bool:
    """Whether a run that was handed out or taken up without progress is rehearsed before it is claimed.

    Only if other code took it up last and still serves it: then the code here may be the wrong one, and the run is left
    untouched. This holds for ten minutes at most after that: a run whose code kills every worker that rehearses it
    leaves no trace. From then on the run is claimed first, as by the code that took it up before.
    """
    taken_up = max(state.adoptions[-1] if state.adoptions else 0, state.standing.wake or 0)
    is_new_here = state.code != code and now - taken_up < PATIENCE_SECONDS * MICROS
    return is_new_here and _is_served_elsewhere(store, state, code)


def _is_served_elsewhere(store: Store, state: RunState, code: str) -> bool:
    created = state.created
    if created is None:
        return False
    served = [other.serving for other in store.workers() if other.worker != store.worker and other.serving is not None]
    return any(
        one.code != code and created.workflow in one.workflows and (not one.queues or created.queue in one.queues)
        for one in served
    )


def forget(store: Store, run: str) -> None:
    """The run went on, or was stopped: the ten minutes start anew next time."""
    with _lock:
        _since.pop((store.id, run), None)


def is_about_code(stops: tuple[Stop, ...] | list[Stop]) -> bool:
    """Whether only the code is the obstacle."""
    return bool(stops) and all(stop.reason in CODE_STOPS for stop in stops)


def stands_at_code(state: RunState) -> bool:
    """Whether the run is stopped for its code, so that other code may go on with it."""
    return state.status == STOPPED and is_about_code(state.stops) and state.claimant is None
