"""`surefoot approve ID [NAME]`: a person approves."""

from __future__ import annotations

from typing import Any

import click

from surefoot.cli.options import Settings
from surefoot.cli.questions import answering, give


@click.command()
@click.argument("run_id", metavar="ID")
@click.argument("name", metavar="[NAME]", required=False)
@answering
def approve(settings: Settings, run_id: str, name: str | None, **said: Any) -> None:
    """Say yes to a question of a run. Without NAME the only open one is meant.

    `surefoot runs show ID` shows what is asked, with its details. The first answer counts; it is recorded with your
    name and note, and nothing is executed by answering.
    """
    give(settings, run_id, name, True, "approved", **said)
