"""`surefoot runs cancel ID`: ask a run to end; without a living process it ends at once."""

from __future__ import annotations

import click

from surefoot.cli import acting
from surefoot.cli.options import Settings, common, operator
from surefoot.core.state import CANCELLED


@click.command()
@click.argument("run_id", metavar="ID")
@operator
@common
@click.pass_obj
def cancel(settings: Settings, run_id: str, by: str | None, note: str) -> None:
    """Ask a run to end. A process that drives it ends it at its next call; without one it ends at once.

    Nothing is undone. Effects that are in doubt stay on record as such.
    """
    from surefoot.engine.handle import whoami

    run = acting.open_run(settings, run_id)
    who = by or whoami()
    run.cancel(by=who, note=note)
    ended = run.status == CANCELLED
    how = "cancelled" if ended else "asked to cancel; its process ends it at the next call"
    acting.report(
        settings,
        run,
        {"run": run_id, "cancelled": ended, "by": who, "note": note},
        f"recorded: run {run_id} {how}, said by {who}",
    )
