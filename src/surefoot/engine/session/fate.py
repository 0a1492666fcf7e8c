"""Whether a process that began a call may still be in it: by its lock, by its lease, or unknown.

A silent process need not be dead. Its lock proves its death, where the lock can be taken; a lease that ran out only
means that others may go on without the process.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from surefoot.core.history import PastEffect
from surefoot.core.programs.landing import GONE, Fate
from surefoot.store.contract import Life
from surefoot.store.liveness import is_ours, vouched

if TYPE_CHECKING:
    from surefoot.engine.session.session import Session


def traced(session: Session, past: PastEffect) -> Fate:
    """The fate of the last attempt at this effect. Attempts of this process are known one by one (`Attempt.busy`)."""
    store = session.runtime.store
    holder = session.state.left_in(past)
    found = [
        _fate(store, worker, past.claimant) for worker in {past.runs_in, holder.worker if holder else ""} if worker
    ]
    return next((fate for fate in found if fate.lives), next((fate for fate in found if fate.unproven), GONE))


def _fate(store: Life, worker: str, claimant: str) -> Fate:
    if worker == store.worker or is_ours(worker):
        return GONE
    if store.alive(worker):
        return Fate(lives=True, told=f"{claimant}, {vouched(store, worker)}; end that process and resume")
    if store.proven_dead(worker):
        return GONE
    return Fate(unproven=True, told=f"{claimant}, which {_silence(store, worker)} and is not proven dead")


def _silence(store: Life, worker: str) -> str:
    heard = store.last_heard(worker)
    if heard is None:
        return "nobody has heard of since"
    return f"was last heard of at {datetime.fromtimestamp(heard / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"
