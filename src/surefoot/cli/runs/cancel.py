"""`surefoot runs cancel ID`: ask a run to end; without a living process it ends at once."""

from __future__ import annotations

import click

from surefoot.cli import confirmation, operators, output
from surefoot.cli.options import Settings, app_option, operator
from surefoot.core.state import CANCELLED
from surefoot.view import facts, outlook


@click.command()
@click.argument("run_id", metavar="ID")
@app_option
@confirmation.yes_option
@operator
def cancel(settings: Settings, run_id: str, app: str | None, yes: bool, by: str, note: str) -> None:
    """Ask a run to end. A process that drives it ends it at its next call; without one it ends at once.

    With the code (--app) what its sagas did is undone first. Without it nothing is: if effects are done, they are
    listed, and you are asked. Effects that are in doubt stay on record as such; look at them outside. Where an engine
    drives runs (SUREFOOT_ENGINE), a worker does all that, and nobody has to name the code.
    """
    from surefoot.cli import code, execution
    from surefoot.engine.process import engines

    with execution.answers_only():
        code.load_app(app)
        run = operators.open_run(settings, run_id)
    left = run.left_done_by_cancel()
    if left:
        output.tell(*outlook.told(outlook.of_cancel(run_id, left, operators.where(settings))))
        confirmation.ask("cancel it, and undo nothing?", yes=yes)
    with execution.answers_only():
        run.cancel(by=by, note=note)
    ended = run.status == CANCELLED
    who = "a worker" if engines.bell().drives else "its process"
    how = "cancelled" if ended else f"asked to cancel; {who} ends it at the next call"
    sentence = f"recorded: run {run_id} {how}, said by {by}"
    operators.report(settings, run, facts.cancellation(left, ended=ended), sentence, by=by, note=note, app=app)
