"""`surefoot runs [list]`: first runs that need a person, however old; then runs that left effects; then the rest."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import click
from msgspec.structs import replace

from surefoot.cli import output, paint
from surefoot.cli.options import Settings, pairs, verb
from surefoot.core.need import KINDS
from surefoot.core.readiness import LEFT_BEHIND
from surefoot.core.state import FAILED, MOVED, QUEUED, RUNNING, SLEEPING, STATUSES, STOPPED, WAITING
from surefoot.engine.operate import run_list
from surefoot.engine.process import config
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Damaged, MovedAway
from surefoot.store.contract import IndexRow, Listed, RunQuery, Stored
from surefoot.view import listing, standing, text
from surefoot.view.standing import Stands

ANY = "*"
MAY_NEED_A_PERSON = (STOPPED, WAITING, RUNNING, SLEEPING, QUEUED)

TOMBSTONE = 1
"""A journal of so few entries has not ended by itself: it is new, or the remainder after pruning."""
_READ_TOGETHER = 25


@click.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only runs with this status.")
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow.")
@click.option("--need", type=click.Choice([*KINDS, ANY]), help="Only runs that wait for a person like this; * for any.")
@click.option("--queue", metavar="NAME", help="Only runs of this queue.")
@click.option("--before", metavar="ID", default="", help="The next page: behind this run of the list.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="Only runs with this label.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most so many of each."
)
@verb
def list_(
    settings: Settings,
    status: str | None,
    workflow: str | None,
    need: str | None,
    queue: str | None,
    before: str,
    labels: tuple[str, ...],
    limit: int,
) -> None:
    """List the runs of the store: those that need a person first, then the others, newest first."""
    found = look(settings.store, RunQuery(status, workflow, pairs(labels, "--label"), limit, need, queue, before))
    if settings.json:
        from surefoot.view import facts

        output.say_json(facts.runs(found))
        return
    if not found:
        from surefoot.cli import operators

        output.tell(text.visible(f"no such runs in {operators.where(settings)}"))
        return
    now = time.time_ns() // 1000
    seen = [one for one, _ in found]
    # Whoever names a thread wants to see its runs.
    lines = [listing.row(one, now) for one in seen] if labels else listing.rows(seen, now, is_cut=len(seen) >= limit)
    paint.draw(listing.COLUMNS, list(lines), flexible=(4,))


def look(store: str | None, query: RunQuery) -> list[tuple[listing.Seen, IndexRow | None]]:
    """The runs that are wanted, in the order of the list, each with its line of the index."""
    # Without any of these options, runs that need a person are searched first, however old. A page is one list.
    everything = not (query.status or query.need or query.before)
    statuses = [*MAY_NEED_A_PERSON, None] if everything else [query.status]
    runtime = config.runtime(store, create=False)
    found: dict[str, Listed] = {}
    for each in statuses:
        for one in run_list.listed(runtime, replace(query, status=each)):
            found.setdefault(one.run, one)
    seen = list(_seen(runtime, list(found.values())))
    return [(one, found[one.run].row) for one in listing.ordered(seen)]


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
