"""`surefoot runs rewind ID --at ADDR`: send a run back to before a call, after telling what that puts in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surefoot.cli import confirmation, operators, output
from surefoot.cli.options import Settings, operator, told_app_option
from surefoot.core.address import as_recorded
from surefoot.core.doubt import on_resume
from surefoot.core.state import reversed_since
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.core.history import Past, PastEffect


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
    output.tell(*_outlook(run_id, address, *run.set_aside_by_rewind(address)))
    confirmation.ask("send it back?", yes=yes)
    doubtful = run.rewind(address, by=by, note=note)
    sentence = f"recorded: run {run_id} goes back to before {address}, said by {by}"
    operators.report(settings, run, facts.rewind(address, doubtful), sentence, by=by, note=note, app=app)


def _outlook(run_id: str, address: str, aside: list[Past], executed: list[PastEffect]) -> list[str]:
    steps = sum(past.kind == "step" for past in aside)
    are = "1 recorded call is" if len(aside) == 1 else f"{len(aside)} recorded calls are"
    run = "1 of them a step that runs" if steps == 1 else f"{steps} of them steps that run"
    kept = f"{are} set aside and kept, {run} again."
    told = [f"run {run_id} would go back to before {address}: {kept}"]
    spent = reversed_since(aside)
    for past in executed:
        then = on_resume(past.policy, spent.get(past.address, ""))
        told.append(f"  in doubt   {past.address}: it happened or may have; a resume would {then}")
    if not executed:
        told.append("  no effect was executed from there on.")
    return [text.visible(line) for line in told]
