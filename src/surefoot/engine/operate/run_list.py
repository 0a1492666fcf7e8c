"""The list of runs, and the present state of one run: everything for reading.

Nothing here drives a run, so `surefoot runs` does not load the code that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec.structs import replace

from surefoot.core.need import KINDS as NEEDS
from surefoot.core.state import DRIVEN, STATUSES, RunState
from surefoot.engine.drive import claimant
from surefoot.engine.process import journal
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.process.whereabouts import at
from surefoot.errors import Damaged, NotFound, UsageError
from surefoot.store.contract import ANY, Listed, RunQuery, Stored
from surefoot.store.rules import matches


def checked(query: RunQuery) -> RunQuery:
    """`UsageError`, if no run can match the query."""
    if query.status not in (None, *STATUSES):
        raise UsageError(f"status={query.status!r} is none of {', '.join(STATUSES)}")
    if query.need not in (None, ANY, *NEEDS):
        raise UsageError(f"need={query.need!r} is none of {', '.join(NEEDS)}")
    return query


def listed(runtime: Runtime, query: RunQuery) -> list[Listed]:
    """A page of the list, newest first. `row` is None only where the journal is damaged too."""
    with at(runtime.store.url):
        found = [_with_row(runtime, one) for one in runtime.store.runs(query)]
    return [one for one in found if one.row is None or matches(query, one.row)]


def named(runtime: Runtime, runs: Iterable[str], query: RunQuery) -> list[Listed]:
    """Of these runs those that match, by their journals: the cost is theirs, however many runs there are."""
    found = []
    with at(runtime.store.url):
        for run in runs:
            with suppress(NotFound):  # It was deleted; something is left under its name.
                found.append(_with_row(runtime, Listed(run, None)))
    return [one for one in found if one.row is None or matches(query, one.row)]


def _with_row(runtime: Runtime, one: Listed) -> Listed:
    """A run whose cached row is missing or damaged: its journal decides. If that is damaged too, the run is listed."""
    if one.row is not None:
        return one
    try:
        found = journal.recorded(runtime.store, one.run)
    except Damaged:
        return one
    return one if found is None else replace(one, row=journal.index_row(found[0]))


def recorded(runtime: Runtime, run: str, stored: Stored | None = None) -> RunState:
    """The run according to its journal now. `stored`: its data, if just read along with others."""
    found = journal.load(runtime.store, run, stored)
    if found is None:
        from surefoot.engine.drive.outcome import not_found

        raise not_found(run, runtime.store.url)
    return found[0]


def look(runtime: Runtime, read: Callable[[], RunState]) -> tuple[RunState, bool]:
    """The run that `read` reads, and whether a living process drives it, both at the same moment."""
    while True:
        state = read()
        if state.status not in DRIVEN:
            return state, False
        if claimant.is_driven(runtime, state):
            return state, True
        if state.claimant is None:
            return state, False
        # Its process is gone. It may have ended in good order after we read: then there is more to read.
        head = runtime.store.read(state.run, state.seq).head
        if head is not None and head.seq == state.seq:
            return state, False
