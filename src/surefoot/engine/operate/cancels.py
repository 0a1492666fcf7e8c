"""The end of a cancelled run that no process drives. With its code, its sagas are undone; else people are alerted.

The request is on record before anything here begins. A process that takes the run up meanwhile finds it at the first
verb, and the run ends there instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from surefoot.core.claim import Claimed
from surefoot.core.entry import RunCancelled
from surefoot.core.history import PastState
from surefoot.core.state import CANCELLED, ENDED, RunState
from surefoot.engine.declare.call_spec import is_undoable
from surefoot.engine.declare.registry import Definition, registry
from surefoot.engine.drive import acts, claimant, parents
from surefoot.engine.drive.conclusion import tell_what_is_left, what_is_left
from surefoot.engine.process import config, engines, journal
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.session.session import Session
from surefoot.errors import Cancelled, CodeChanged, Fenced
from surefoot.store.contract import Head

if TYPE_CHECKING:
    from surefoot.engine.operate.resume_plan import ResumePlan


def undoes_here(runtime: Runtime, state: RunState) -> Definition | None:
    """The workflow, if a cancellation has to run its code in this process."""
    definition = registry.known_for(state.created)
    if definition is None or engines.bell().drives or claimant.is_driven(runtime, state):
        return None
    effects = state.effects()
    undoes = state.in_doubt() or any(is_undoable(past.address) for past in effects)
    return definition if undoes else None


def would_leave_done(runtime: Runtime, state: RunState) -> list[str]:
    """Effects that a cancellation from here would leave done, because only the code knows whether to undo them."""
    over = engines.bell().drives or state.status in ENDED or claimant.is_driven(runtime, state)
    return [] if over else _left_done(state)


def foreseen(runtime: Runtime, state: RunState, plan: ResumePlan) -> ResumePlan:
    """The same plan for a run that is asked to cancel: where nothing of it is undone here, it ends at once."""
    if engines.bell().drives or claimant.is_driven(runtime, state) or undoes_here(runtime, state) is not None:
        return plan
    if _may_undo_elsewhere(state):
        return plan  # Its undos are not known here: neither what is next, nor how it ends.
    return replace(plan, next=[], stops=[], ending=CANCELLED)


def _may_undo_elsewhere(state: RunState) -> bool:
    """Whether only the code knows what a cancellation leads to: what is done may have to be undone, and is not known here."""
    if state.created is None or registry.known_for(state.created) is not None:
        return False
    return bool(_left_done(state) or state.in_doubt())


def carry_out(runtime: Runtime, found: tuple[RunState, Head], resume: Callable[[], object]) -> None:
    """End the run now that the request is recorded, unless others do so: a living process that drives it, or an engine."""
    state = found[0]
    if engines.bell().drives or claimant.is_driven(runtime, state):
        return
    if undoes_here(runtime, state) is not None:
        _undo_and_end(runtime, state.run, resume)
        return
    left = _left_done(state)
    _end(runtime, found)
    if left:
        _tell_nothing_undone(state.run, f"its code is not at hand. Done, and left as it is: {', '.join(left)}")


def _left_done(state: RunState) -> list[str]:
    if state.created is None or registry.known_for(state.created) is not None:
        return []
    done = (past.address for past in state.effects() if past.state is PastState.DONE)
    return [address for address in done if not address.rpartition("#")[0].endswith(".undo")]


def _undo_and_end(runtime: Runtime, run_id: str, resume: Callable[[], object]) -> None:
    """Replay up to the place where the cancellation strikes: sagas are undone from there."""
    try:
        resume()
    except Cancelled:
        return
    except CodeChanged as stop:
        _tell_nothing_undone(run_id, stop.summary)
        if (found := journal.load(runtime.store, run_id)) is not None:
            _end(runtime, found)


def _tell_nothing_undone(run_id: str, why: str) -> None:
    config.loud(f"run {run_id} was cancelled, and nothing of it was undone: {why}", run=run_id, kind="cancel")


def _end(runtime: Runtime, found: tuple[RunState, Head]) -> None:
    run_id = found[0].run
    if found[0].status in ENDED or claimant.is_driven(runtime, found[0]):
        return
    session = Session(runtime, *found)
    children = session.state.children  # From the last release. Once the run is claimed, it waits for no child.
    try:
        if not isinstance(acts.claim(session), Claimed):
            return  # Another process took the run up meanwhile, and finds the request at its first verb.
        left = what_is_left(session)
        tell_what_is_left(session)  # First: if the process dies in between, people are alerted twice instead of never.
        session.journal.append(RunCancelled(left))
        if (created := session.state.created) is not None and created.child_of:
            parents.tell(runtime, run_id, created.child_of)
        for child in children:
            parents.cancel(runtime, child, run_id)
    except Fenced:
        return  # The same, slightly later.
    finally:
        runtime.discharge(session)
