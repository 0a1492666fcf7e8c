"""`surefoot runs release ID`: let a quarantined run be tried again."""

from __future__ import annotations

import click

from surefoot.cli import operators
from surefoot.cli.options import Settings, operator, told_app_option
from surefoot.view import facts


@click.command()
@click.argument("run_id", metavar="ID")
@told_app_option
@operator
def release(settings: Settings, run_id: str, app: str | None, by: str, note: str) -> None:
    """Let workers take up a run again that was quarantined: taken up five times, and each time its process ended
    before anything new was recorded.

    Find out why first (`surefoot runs show ID`). Recorded with your name and note; nothing is executed by releasing.
    """
    run = operators.open_run(settings, run_id)
    run.release(by=by, note=note)
    sentence = f"recorded: run {run_id} may be taken up again, said by {by}"
    operators.report(settings, run, facts.release(), sentence, by=by, note=note, app=app)
