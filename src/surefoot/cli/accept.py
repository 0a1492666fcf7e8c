"""`surefoot accept ID [WITNESS]`: a person accepts what has changed outside since a run left it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surefoot.cli import confirmation, operators, output
from surefoot.cli.options import Settings, app_option, operator
from surefoot.core.expectation import UNSEEN
from surefoot.errors import UsageError
from surefoot.view import facts, outlook, text

if TYPE_CHECKING:
    from surefoot.core.entry import Drift
    from surefoot.engine.operate.handle import Run


@click.command()
@click.argument("run_id", metavar="ID")
@click.argument("witness", metavar="[WITNESS]", required=False)
@app_option
@confirmation.yes_option
@operator
def accept(
    settings: Settings, run_id: str, witness: str | None, app: str | None, yes: bool, by: str, note: str
) -> None:
    """Accept what has changed outside since a run left it: all of it, or what one WITNESS sees.

    It is looked at again, and what is found now is accepted and listed. The code is needed (--app) only for what cannot
    be looked at without it. Recorded with your name and note; nothing is executed.

    A WITNESS that cannot be observed has to be named. To accept that means that the run no longer watches it; this is
    asked first.
    """
    from surefoot.cli import code, execution

    with execution.answers_only():
        code.load_app(app)
        run = operators.open_run(settings, run_id)
        unseen = [found for found in run.drift() if found.what == UNSEEN]
        _require_code(run_id, unseen, witness, app)
    named = [found for found in unseen if found.witness == witness]
    if named:
        output.tell(*outlook.of_watching_no_more(run_id, named[0]))
        confirmation.ask("no longer watch it?", yes=yes)
    with execution.answers_only():
        accepted = run.take_as_found(witness, by=by, note=note)
    _report(settings, run, accepted, by, note, app)
    if witness is None:
        output.tell(*(text.visible(f"not accepted: {found.line()}") for found in unseen))


def _require_code(run_id: str, unseen: list[Drift], witness: str | None, app: str | None) -> None:
    """An observation that only lacks the code asks for the code, instead of ending the watch."""
    from surefoot.engine.declare.drifts import CODE_NEEDED

    for found in unseen:
        if app is None and found.actual == CODE_NEEDED and witness in (None, found.witness):
            raise UsageError(f"run {run_id}: {found.line()}. Where it does so already, name its module: --app MODULE.")


def _report(settings: Settings, run: Run, accepted: list[Drift], by: str, note: str, app: str | None) -> None:
    if not settings.json:
        for line in (one.line() for one in accepted):
            output.say(text.visible(line))
    names = ", ".join(sorted({one.witness for one in accepted}))
    unwatched = any(one.what == UNSEEN for one in accepted)
    how = f"no longer watches {names}" if unwatched else f"takes {names} as found"
    sentence = f"recorded: run {run.id} {how}, said by {by}"
    operators.report(settings, run, facts.acceptance(accepted), sentence, by=by, note=note, app=app)
