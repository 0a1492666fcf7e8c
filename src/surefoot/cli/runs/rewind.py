"""`surefoot runs rewind ID --at ADDR`: rewind a run to before a call, after a list of effects that will be in doubt."""

from __future__ import annotations

import click

from surefoot.cli import confirmation, operators, output
from surefoot.cli.options import Settings, operator, told_app_option
from surefoot.core.address import as_recorded
from surefoot.view import facts, outlook


@click.command()
@click.argument("run_id", metavar="ID")
@click.option("--at", "address", metavar="ADDR", required=True, help="The first call that is to be made again.")
@confirmation.yes_option
@told_app_option
@operator
def rewind(settings: Settings, run_id: str, address: str, yes: bool, app: str | None, by: str, note: str) -> None:
    """Send a run back to before a call. Lists the effects that would be in doubt, and asks first.

    What was recorded from there on is set aside and kept in the journal; steps run again. Effects that were executed stay
    executed: each of them is in doubt until its policy, its check or a person says what to do. Nothing is executed now.
    """
    run = operators.open_run(settings, run_id)
    address = as_recorded(address)
    output.tell(*outlook.told(outlook.of_rewind(run_id, address, *run.set_aside_by_rewind(address))))
    confirmation.ask("send it back?", yes=yes)
    doubtful = run.rewind(address, by=by, note=note)
    sentence = f"recorded: run {run_id} goes back to before {address}, said by {by}"
    operators.report(settings, run, facts.rewind(address, doubtful), sentence, by=by, note=note, app=app)
