"""`surefoot runs [list]`: first runs that need a person, however old; then runs that left effects; then the rest."""

from __future__ import annotations

import time

import click

from surefoot.cli import output, paint
from surefoot.cli.options import Settings, pairs, verb
from surefoot.console import listings
from surefoot.core.need import KINDS
from surefoot.core.state import STATUSES
from surefoot.engine.process import config
from surefoot.store.contract import ANY, RunQuery
from surefoot.view import listing, text


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

        output.say_json(facts.runs(found.runs, following=found.following))
        return
    if not found.runs:
        from surefoot.cli import operators

        output.tell(text.visible(f"no such runs in {operators.where(settings)}"))
        return
    now = time.time_ns() // 1000
    seen = [one for one, _ in found.runs]
    # Whoever names a thread wants to see its runs.
    lines = [listing.row(one, now) for one in seen] if labels else listing.rows(seen, now, is_cut=len(seen) >= limit)
    paint.draw(listing.COLUMNS, list(lines), flexible=(4,))


def look(store: str | None, query: RunQuery) -> listings.Listing:
    return listings.runs(config.runtime(store, create=False), query)
