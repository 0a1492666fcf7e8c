"""`surefoot approve ID [NAME]`: a person's yes."""

from __future__ import annotations

import click

from surefoot.cli.options import Settings, common, operator, told_app_option
from surefoot.cli.questions import give, shown_option


@click.command()
@click.argument("run_id", metavar="ID")
@click.argument("name", metavar="[NAME]", required=False)
@shown_option
@told_app_option
@operator
@common
@click.pass_obj
def approve(
    settings: Settings, run_id: str, name: str | None, shown: str, app: str | None, by: str | None, note: str
) -> None:
    """Say yes to a question of a run. Without NAME the only open one is meant.

    `surefoot runs show ID` shows what is asked, with its details. The first answer counts; it is recorded with your
    name and note, and nothing is executed by answering.
    """
    give(settings, run_id, name, True, "approved", by=by, note=note, shown=shown, app=app)
