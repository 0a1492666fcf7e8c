"""The list of runs: first those that need a person, however old; then the rest, newest first. Nothing here writes.

People look at it all the time, so this file loads nothing that drives runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core.readiness import LEFT_BEHIND
from surefoot.core.state import FAILED, MOVED, QUEUED, RUNNING, SLEEPING, STOPPED, WAITING
from surefoot.engine.operate import run_list
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Damaged, MovedAway
from surefoot.store.contract import IndexRow, Listed, RunQuery, Stored
from surefoot.view import listing, standing
from surefoot.view.standing import Stands

MAY_NEED_A_PERSON = (STOPPED, WAITING, RUNNING, SLEEPING, QUEUED)

TOMBSTONE = 1
"""A journal of so few entries has not ended by itself: it is new, or the remainder after pruning."""
_READ_TOGETHER = 25


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
    following = last[-1].run if len(last) >= query.limit else ""
    return Listing(_ordered(runtime, found), following)


def named(runtime: Runtime, names: Sequence[str], query: RunQuery) -> Listing:
    """Of the runs of these names those that are wanted, in the order of the list. All on one page."""
    return Listing(_ordered(runtime, {one.run: one for one in run_list.named(runtime, names, query)}))


def _ordered(runtime: Runtime, found: dict[str, Listed]) -> list[tuple[listing.Seen, IndexRow | None]]:
    seen = listing.ordered(_seen(runtime, list(found.values())))
    return [(one, found[one.run].row) for one in seen]


def _seen(runtime: Runtime, found: Sequence[Listed]) -> Iterator[listing.Seen]:
    """The cached row; the journal itself for runs that are not over, failed, or may be pruned: only it is certain."""
    unsure = []
    for one in found:
        row = one.row
        over = row is not None and row.status not in (*MAY_NEED_A_PERSON, FAILED) and row.reason != LEFT_BEHIND
        if row is not None and over and (row.seq > TOMBSTONE or row.status == MOVED):
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
    except MovedAway:
        known = (row.workflow, MOVED, row.created, row.labels) if row is not None else ("", MOVED, 0, {})
        return listing.Seen(one.run, *known, Stands(MOVED))
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
