"""What is shown of runs: read from a store, and put into the words and objects of `view`. Nothing here writes.

The command line and the HTTP API give the same objects because both take them from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core.address import as_recorded
from surefoot.core.readiness import LEFT_BEHIND
from surefoot.core.state import FAILED, QUEUED, RUNNING, SLEEPING, STOPPED, WAITING, RunState
from surefoot.engine.operate import run_list
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Damaged
from surefoot.store.contract import IndexRow, Listed, RunQuery, Stored
from surefoot.view import facts, listing, page, standing, words
from surefoot.view.facts import Facts
from surefoot.view.standing import Stands

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run

MAY_NEED_A_PERSON = (STOPPED, WAITING, RUNNING, SLEEPING, QUEUED)

TOMBSTONE = 1
"""A journal of so few entries has not ended by itself: it is new, or the remainder after pruning."""
_READ_TOGETHER = 25


# --- one run -----------------------------------------------------------------------------------------


def open_run(runtime: Runtime, run_id: str) -> Run:
    """A handle that reads the journal once, and after that only what is new."""
    from surefoot.engine.declare.plan import check_id
    from surefoot.engine.operate.handle import Run

    check_id(run_id)
    run = Run(runtime, run_id, keeps=True)
    run.state()
    return run


def look(run: Run) -> tuple[RunState, bool]:
    """The run, and whether a living process drives it, both at the same moment."""
    return run_list.look(run.runtime, run.state)


def page_of(run: Run, *, where: str, app: str = words.UNKNOWN_APP) -> page.Page:
    """The run for people, as it is now, with commands that name its store and its code."""
    state, driven = look(run)
    return page.page(state, driven=driven, now=run.runtime.clock.now(), where=where, app=app, whole=run.whole)


def call_of(run: Run, address: str) -> tuple[page.CallPage, Facts]:
    """One call, whole: its page, and the object for programs. `UsageError`, if there is none of that name."""
    state, driven = look(run)
    wanted, now = as_recorded(address), run.runtime.clock.now()
    seen = page.call_page(state, wanted, run.story(), driven=driven, now=now, whole=run.whole)
    if seen is None:
        from surefoot.engine.operate import forks

        raise forks.unknown_call(run.id, wanted, list(state.calls))
    return seen, facts.call(seen, [entry for entry in run.entries() if entry.seq in seen.seqs])


def after_failure(run: Run, where: str) -> tuple[words.Help, ...]:
    """What helps a run that is recorded as failed; nothing for any other."""
    how = standing.stands(run.state(), driven=False, now=run.runtime.clock.now())
    return () if how.failure is None else standing.what_helps(run.id, how, where)


# --- the list ----------------------------------------------------------------------------------------


class Listing(Struct, frozen=True):
    runs: list[tuple[listing.Seen, IndexRow | None]]
    """In the order of the list, each with its line of the index."""
    following: str = ""
    """The run behind which the next page begins; empty: this was the last."""


def runs(runtime: Runtime, query: RunQuery) -> Listing:
    """The runs that are wanted, in the order of the list, each with its line of the index."""
    # Without any of these options, runs that need a person are searched first, however old. A page is one list.
    everything = not (query.status or query.need or query.before)
    statuses = [*MAY_NEED_A_PERSON, None] if everything else [query.status]
    found: dict[str, Listed] = {}
    last: list[Listed] = []
    for each in statuses:
        last = run_list.listed(runtime, replace(query, status=each))
        for one in last:
            found.setdefault(one.run, one)
    seen = list(_seen(runtime, list(found.values())))
    following = last[-1].run if len(last) >= query.limit else ""
    return Listing([(one, found[one.run].row) for one in listing.ordered(seen)], following)


def _seen(runtime: Runtime, found: Sequence[Listed]) -> Iterator[listing.Seen]:
    """The cached row; the journal itself for runs that are not over, failed, or may be pruned: only it is certain."""
    unsure = []
    for one in found:
        row = one.row
        over = row is not None and row.status not in (*MAY_NEED_A_PERSON, FAILED) and row.reason != LEFT_BEHIND
        if row is not None and over and row.seq > TOMBSTONE:
            yield listing.Seen(row.run, row.workflow, row.status, row.created, row.labels, Stands(row.status))
        else:
            unsure.append(one)
    for first in range(0, len(unsure), _READ_TOGETHER):
        together = unsure[first : first + _READ_TOGETHER]
        stored: list[Stored | None] = [None] * len(together)
        with suppress(Damaged):  # One of them is damaged: then each is read by itself.
            stored = [*runtime.store.read_all([one.run for one in together])]
        yield from (_by_journal(runtime, *each) for each in zip(together, stored, strict=True))


def _by_journal(runtime: Runtime, one: Listed, stored: Stored | None) -> listing.Seen:
    """`stored`: its data as just read. If its process ends meanwhile, the run is read again."""
    row, read = one.row, [stored]
    try:
        state, driven = run_list.look(
            runtime, lambda: run_list.recorded(runtime, one.run, read.pop() if read else None)
        )
    except Damaged as error:
        known = (row.workflow, row.status, row.created, row.labels) if row is not None else ("", "", 0, {})
        damage = f"{type(error).__name__}: {error.summary}"
        return listing.Seen(one.run, *known, Stands(standing.DAMAGED, damage=damage))
    created = state.created
    return listing.Seen(
        one.run,
        created.workflow if created else "",
        state.status,
        state.created_at,
        dict(created.labels) if created else {},
        standing.stands(state, driven=driven, now=runtime.clock.now()),
    )
