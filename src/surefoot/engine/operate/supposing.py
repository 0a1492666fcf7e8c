"""What would follow if somebody said that: the entry is folded into the run without being written, then a resume is rehearsed.

The entry comes from `decisions.py`, where the verb takes it from, too. So what is foretold is what happens, up to the first
call that would be made: what follows from there on is decided by what that call gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from surefoot.core.address import as_recorded
from surefoot.core.history import Past, PastEffect, PastState, PastStep
from surefoot.engine.operate import cancels, decisions, resume_plan
from surefoot.engine.operate.decisions import Cancel, Fork, Who
from surefoot.engine.process import journal
from surefoot.store.contract import Head

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run, Seen

_ON_RECORD = (PastState.DONE, PastState.FAILED)


class Supposed(Struct, frozen=True):
    """What would follow. Nothing is recorded and nothing is executed by asking."""

    run_id: str
    do: str
    """What is supposed to be said: `settle`, `rewind` …"""
    sets_aside: list[str]
    """Calls on record that would not count any more. They stay in the journal."""
    runs_again: list[str]
    """Of these, what a resume makes again if the code asks for it: steps, and effects that are known to have done nothing."""
    in_doubt: list[tuple[str, str]]
    """(address, what a resume does about it) of the effects that would be in doubt."""
    next: list[tuple[str, str]] | None
    """(kind, address) of the calls that would be executed next; None: the code is not at hand."""
    stops: list[str]
    """What would stop a resume before anything new is executed."""
    plan: resume_plan.ResumePlan
    """All that a resume would do then."""
    seen: Seen
    """The run as it was when this was asked. A verb with this as `seen=` does what was foretold, or nothing."""


def suppose(run: Run, given: Any, who: Who) -> Supposed:
    """What would follow if that were said now. Refused as the verb would refuse it."""
    from surefoot.engine.operate.handle import Seen

    said = decisions.action(given)
    state, head = run._loaded_anew()
    seen = Seen.at(head)
    before = dict(state.calls)
    if isinstance(said, Fork):
        return _forked(run, said, who, before, seen)
    entry = decisions.entry(run, state, said, who)
    if entry is not None:
        head = journal.suppose(run.runtime.store, run.runtime.clock, state, head, entry)
    plan = resume_plan.plan(run.runtime, state, head, looks_anywhere=run.looks_anywhere)
    if isinstance(said, Cancel):
        plan = cancels.foreseen(run.runtime, state, plan)
    return _told(said, before, state.calls, plan, seen)


def _forked(run: Run, said: Fork, who: Who, before: dict[str, Past], seen: Seen) -> Supposed:
    from surefoot.engine.operate import forks

    forks.existing(run, said.id, at=as_recorded(said.at))
    draft = forks.prepare(run, said.id, at=said.at, by=who.by, note=who.note, via=who.via, seen=seen)
    last = draft.records[-1]
    end = Head(last.seq, last.seal)
    plan = resume_plan.plan(run.runtime, draft.state, end, looks_anywhere=run.looks_anywhere)
    return _told(said, before, draft.state.calls, plan, seen)


def _told(
    said: decisions.Action, before: dict[str, Past], after: dict[str, Past], plan: resume_plan.ResumePlan, seen: Seen
) -> Supposed:
    aside = [past for past in _recorded(before) if not _stands(past, after.get(past.address))]
    return Supposed(
        plan.run_id,
        said.__struct_config__.tag,  # type: ignore[arg-type]
        [past.address for past in aside],
        [past.address for past in aside if _runs_again(past, after.get(past.address), is_fork=isinstance(said, Fork))],
        plan.in_doubt,
        plan.next,
        plan.stops,
        plan,
        seen,
    )


def _recorded(calls: dict[str, Past]) -> list[Past]:
    """Calls with an outcome, and effects that may have one."""
    return [past for past in calls.values() if past.state in _ON_RECORD or isinstance(past, PastEffect)]


def _stands(past: Past, after: Past | None) -> bool:
    """Whether what is on record of a call counts as before, or somebody has only answered for it."""
    if after is None:
        return False
    was_open = past.state not in _ON_RECORD
    return after.state is past.state or (was_open and after.state in _ON_RECORD)


def _runs_again(past: Past, after: Past | None, *, is_fork: bool) -> bool:
    if isinstance(past, PastEffect):
        return is_fork or (after is not None and after.state is PastState.CLEARED)
    return isinstance(past, PastStep)
