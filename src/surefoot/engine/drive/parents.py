"""Messages between parent and child runs: a child has ended, or is no longer needed."""

from __future__ import annotations

import msgspec

from surefoot.core.entry import CancelRequested, ChildEnded
from surefoot.core.readiness import goes_on
from surefoot.core.state import ENDED, RunState
from surefoot.core.timer import remaining
from surefoot.engine.process import journal
from surefoot.engine.process.runtime import Runtime
from surefoot.store.contract import Extend, Head


def tell(runtime: Runtime, child: str, parent: str) -> None:
    """The child has ended: its parent, which waits, may go on."""

    def decide(state: RunState) -> ChildEnded | None:
        return None if state.status in ENDED or child in state.ended_children else ChildEnded(child)

    journal.visit(runtime.store, runtime.clock, parent, decide)


def cancel(runtime: Runtime, child: str, parent: str) -> None:
    """A cancelled parent has no use for a child that it started and waits for."""

    def decide(state: RunState) -> CancelRequested | None:
        ours = state.created is not None and state.created.child_of == parent
        needed = ours and state.status not in ENDED and state.cancel is None
        return CancelRequested(f"run {parent}") if needed else None

    journal.visit(runtime.store, runtime.clock, child, decide)


def waits_in_vain(runtime: Runtime, state: RunState, head: Head) -> bool:
    """Whether a parent was woken only to look, and its children are as they were. Then it looks again later.

    Only its line in the index changes: a wait must not make the journal grow.
    """
    now = runtime.clock.read()
    over = state.due is not None and remaining(state.due, now) <= 0
    if not state.children or state.news or over or any(_has_ended(runtime, child) for child in state.children):
        return False
    row = msgspec.structs.replace(journal.index_row(state), wake=goes_on(state, now.wall))
    runtime.store.append([Extend(state.run, head, [], row)])
    return True


def _has_ended(runtime: Runtime, child: str) -> bool:
    found = journal.load(runtime.store, child)
    return found is None or found[0].status in ENDED
