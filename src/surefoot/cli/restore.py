"""`surefoot restore RUN`: a run that was pruned into a bucket comes back."""

from __future__ import annotations

import click

from surefoot.cli import output
from surefoot.cli.flaws import many
from surefoot.cli.options import Settings, operator
from surefoot.view import facts


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "--from", "url", metavar="URL", default="", help="Its object, if it is no longer where the tombstone says."
)
@operator
def restore(settings: Settings, run_id: str, url: str, by: str, note: str) -> None:
    """Put a run that `surefoot prune --archive` took away back in the place of its tombstone, record for record.

    The object has to be the very one that was archived: its SHA-256 is on record, and every seal in it is checked.
    """
    from surefoot.engine.process import config
    from surefoot.engine.upkeep import archives

    runtime = config.runtime(settings.store, create=False)
    found = archives.restore(runtime, run_id, url=url, by=by, note=note)
    output.answer(settings, facts.taken_in(found), f"run {found.run}: {many(found.entries, 'entry')} are back.")
