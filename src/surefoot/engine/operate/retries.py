"""Another try of failed calls (`run.retry`, `surefoot runs retry`): one entry, which executes nothing.

A run whose call to `sf.child` failed can only go on if its child does. So failed calls of the child are tried again
first, then the call that waits for it; each is an entry of its own run, and a repetition does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core import values
from surefoot.core.address import as_recorded
from surefoot.core.cure import Ask, command
from surefoot.core.entry import CallsReopened, Entry
from surefoot.core.history import Past, PastEffect, PastQuestion, PastState, PastStep, PastWait
from surefoot.core.reopening import (
    cures,
    expired,
    failed_calls,
    is_undo,
    undo_again,
    undone_around,
    undone_at_last,
    why_not,
)
from surefoot.core.state import CANCELLED, ENDED, FAILED, RunState
from surefoot.engine.drive import claimant
from surefoot.engine.operate import decisions, forks
from surefoot.engine.operate.decisions import Retry, Who
from surefoot.engine.process import journal
from surefoot.errors import UsageError

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run, Seen

WORKFLOW_FAILED = "WorkflowFailed"


class Reopening(Struct, frozen=True):
    """The calls of one run that a retry reopens."""

    run: str
    steps: list[str]
    """Steps that run again."""
    effects: list[str]
    """Effects that did nothing, and run under their keys."""
    in_doubt: list[str]
    """Effects that failed in doubt: a person has to settle whether they happened."""
    waits: list[str]
    """Questions and waits whose time was over: they begin anew."""
    expired: list[str]
    """Questions and waits whose time was over, and that were not named: they stay expired."""

    @property
    def addresses(self) -> list[str]:
        return [*self.steps, *self.effects, *self.in_doubt, *self.waits]


def retry(run: Run, said: Retry, who: Who, seen: Seen | None = None) -> list[str]:
    """Child runs first: after a crash in between, the children are reopened, and the parent still can be."""
    children = _failed_children(run, _wanted(failed=said.failed, at=said.at))
    if seen is not None:
        run.require_unmoved(seen)  # Before anything of it is recorded with its children.
    for child in children:
        retry(child, Retry(failed=True), replace(who, note=who.note or f"run {run.id} is tried again"))
    reopened: list[str] = []

    def decide(state: RunState) -> Entry | None:
        entry = decisions.entry(run, state, said, who)
        reopened[:] = entry.addresses if isinstance(entry, CallsReopened) else ()
        return entry

    run._visit(decide, seen)
    return reopened


def outlook(run: Run, *, failed: bool | None, at: str | Iterable[str]) -> list[Reopening]:
    """What `retry` would do; UsageError, where it would be refused."""
    wanted = _wanted(failed=failed, at=at)
    children = [one for child in _failed_children(run, wanted) for one in outlook(child, failed=True, at=())]
    state = run.state()
    return [*children, _told(state, _chosen(run, state, wanted))]


def chosen(run: Run, state: RunState, *, failed: bool | None, at: Iterable[str]) -> list[Past]:
    """The calls that a retry reopens. UsageError: nothing may be, or nothing is there to be."""
    return _chosen(run, state, _wanted(failed=failed, at=at))


def is_failed(state: RunState) -> bool:
    """Whether it failed as a whole: at its end, or at a stop (`on_failure="stop"`)."""
    return state.status == FAILED or any(stop.reason == WORKFLOW_FAILED for stop in state.stops)


def _wanted(*, failed: bool | None, at: str | Iterable[str]) -> tuple[str, ...]:
    """The addresses that were named; none: everything that failed."""
    named = (at,) if isinstance(at, str) else tuple(at)
    if bool(named) == bool(failed) and (named or failed is not None):
        raise UsageError("retry: say either failed=True or at=[ADDRESS, …]")
    return tuple(dict.fromkeys(map(as_recorded, named)))


def _told(state: RunState, chosen: list[Past]) -> Reopening:
    effects = [past for past in chosen if isinstance(past, PastEffect)]
    return Reopening(
        run=state.run,
        steps=[past.address for past in chosen if isinstance(past, PastStep)],
        effects=[past.address for past in effects if not past.gave_up],
        in_doubt=[past.address for past in effects if past.gave_up],
        waits=[past.address for past in chosen if isinstance(past, PastQuestion | PastWait)],
        expired=[past.address for past in expired(state) if past not in chosen],
    )


def _chosen(run: Run, state: RunState, wanted: tuple[str, ...]) -> list[Past]:
    """The calls that a retry reopens. UsageError: none may be reopened, or there is none."""
    _require_retryable(run, state)
    chosen: list[Past] = [_named(run, state, address) for address in wanted] if wanted else [*failed_calls(state)]
    if not chosen and not is_failed(state):
        over = "" if state.status in ENDED else f" To go on with it: {command('runs resume', run.id)}"
        raise UsageError(f"run {run.id}: nothing failed in it; it is {state.status}.{over}")
    around = undone_around(state, chosen) if chosen else undone_at_last(state)
    if around is not None:
        what = "the run" if not chosen else ", ".join(past.address for past in chosen[:5])
        offers = [cures(run.id, around)[0]]
        if undos := [past.address for past in chosen if is_undo(past.address)]:
            offers.append(undo_again(run.id, undos, when="only undo what is left?"))
        raise UsageError(
            f"run {run.id}: {what} cannot be tried again by itself: {around.effect.address} came before, and no longer "
            f"stands: {why_not(around)}" + "".join(f"\n  {cure.when}   {cure}" for cure in offers)
        )
    return chosen


def _require_retryable(run: Run, state: RunState) -> None:
    if state.pruned is not None:
        raise UsageError(f"run {run.id} was pruned: what it recorded is no longer kept, so nothing can be tried again.")
    claimant.refuse_driven(run.runtime, state, " Wait for it, or end it first.")
    if state.cancel is not None or state.status == CANCELLED:
        was = "was cancelled" if state.status == CANCELLED else "has been asked to cancel"
        raise UsageError(
            f"run {run.id} {was}: it is not tried again. To take that back, send it to before a call: "
            f"{command('runs rewind', run.id, at=Ask('ADDR'))}"
        )


def _named(run: Run, state: RunState, address: str) -> Past:
    past = state.calls.get(address)
    if past is None:
        raise forks.unknown_call(run.id, address, list(state.calls))
    if past.state is not PastState.FAILED:
        raise UsageError(
            f"run {run.id}: {address} did not fail: it is {past.state.value}. To go back to before it, and make it and "
            f"what came after it again: {command('runs rewind', run.id, at=address)}"
        )
    return past


# --- child runs --------------------------------------------------------------------------------------


def _failed_children(run: Run, wanted: tuple[str, ...]) -> list[Run]:
    """The child runs whose failure made a call of this run fail, and that were not reopened yet."""
    state = run.state()
    calls = (past for past in failed_calls(state) if not wanted or past.address in wanted)
    children = [child_id for past in calls if (child_id := child_of_call(run, past))]
    return [child for name in dict.fromkeys(children) if _needs_retry(run, child := type(run)(run.runtime, name))]


def child_of_call(run: Run, past: Past) -> str:
    """The id of the run that a call to `sf.child` waited for; empty: this is no such call."""
    if past.kind != "step" or past.args is None or past.address.rpartition("/")[2].partition("#")[0] != "child":
        return ""
    args: Any = values.decode(run.whole(past.args))
    is_child = isinstance(args, dict) and set(args) == {"workflow", "run_id", "args", "kwargs"}
    return str(args["run_id"]) if is_child else ""


def _needs_retry(run: Run, child: Run) -> bool:
    found = journal.load(child.runtime.store, child.id)
    if found is None:
        return False
    state = found[0]
    if state.pruned is not None or state.status == CANCELLED:
        why = "was pruned" if state.pruned is not None else "was cancelled"
        raise UsageError(
            f"run {run.id} cannot be tried again as it is: its child run {child.id} {why}, and would end the same way."
        )
    return state.status == FAILED
