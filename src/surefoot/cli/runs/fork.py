"""`surefoot runs fork ID --at ADDR --id NEW`: a new run that goes on from a point of another, which is only read."""

from __future__ import annotations

import click

from surefoot.cli import confirmation, operators, output
from surefoot.cli.options import Settings, operator, told_app_option
from surefoot.view import facts, outlook


@click.command()
@click.argument("run_id", metavar="ID")
@click.option("--at", "address", metavar="ADDR", required=True, help="The call before which the fork begins.")
@click.option("--id", "new_id", metavar="NEW", required=True, help="The id of the new run.")
@confirmation.yes_option
@told_app_option
@operator
def fork(
    settings: Settings, run_id: str, address: str, new_id: str, yes: bool, app: str | None, by: str, note: str
) -> None:
    """Make a new run that reuses what a run had recorded before a call, and goes on by itself.

    The run itself is only read. Effects from that call on are executed again by the fork, with keys of its own: they
    are listed, and you are asked. Nothing is executed before the fork is resumed.
    """
    from surefoot.engine.operate import forks

    run = operators.open_run(settings, run_id)
    found = forks.existing(run, new_id, at=address)
    if found is None:
        draft = forks.prepare(run, new_id, at=address, by=by, note=note)
        output.tell(*outlook.told(outlook.of_fork(run_id, new_id, draft)))
        confirmation.ask("make this fork?", yes=yes)
        found = run.fork(new_id, at=address, by=by, note=note)
    said = f"recorded: run {new_id}, forked from {run_id} before {found.at}"
    operators.report(settings, found.run, facts.fork(found), said, by=by, note=note, app=app)
