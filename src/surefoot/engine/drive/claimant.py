"""Which process drives a run: the claim in the journal, and whether that process is alive."""

from __future__ import annotations

from surefoot.core.state import DRIVEN, RunState
from surefoot.engine.process.runtime import Runtime, driven_here
from surefoot.errors import UsageError
from surefoot.store.liveness import is_ours, vouched


def is_driven(runtime: Runtime, state: RunState) -> bool:
    """Whether a living process drives the run: this one, or another whose lock is held."""
    if driven_here(runtime.store, state.run):
        return True
    holder = state.claimant
    if holder is None or state.status not in DRIVEN:
        return False
    # Our own claim, but no session holds it: abandoned without RunReleased. Ignore it.
    return not is_ours(holder.worker) and runtime.store.alive(holder.worker)


def described(state: RunState) -> str:
    """The claimant of the run, in words."""
    holder = state.claimant
    return "nobody" if holder is None else f"worker {holder.worker[:8]} on host {holder.host} (pid {holder.pid})"


def described_living(runtime: Runtime, state: RunState) -> str:
    """The process that drives the run, and how sure that is."""
    worker = state.claimant.worker if state.claimant is not None else ""
    return f"{described(state)}, {vouched(runtime.store, worker)}"


def refuse_driven(runtime: Runtime, state: RunState, then: str = "") -> None:
    """For changes of a run that no process may drive meanwhile. `then`: what helps."""
    if is_driven(runtime, state):
        raise UsageError(f"run {state.run} is being driven by {described_living(runtime, state)}.{then}")
