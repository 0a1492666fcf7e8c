"""`surefoot accept ID [WITNESS]`: a person accepts what has changed outside since a run left it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surefoot.cli import acting, output
from surefoot.cli.options import Settings, app_option, common, operator
from surefoot.errors import UsageError
from surefoot.view import text

if TYPE_CHECKING:
    from surefoot.core.expectation import Drift
    from surefoot.engine.handle import Run


@click.command()
@click.argument("run_id", metavar="ID")
@click.argument("witness", metavar="[WITNESS]", required=False)
@app_option
@operator
@common
@click.pass_obj
def accept(settings: Settings, run_id: str, witness: str | None, app: str | None, by: str | None, note: str) -> None:
    """Accept what has changed outside since a run left it: all of it, or what one WITNESS sees.

    It is looked at again, and what is found now is accepted and listed. The code is needed (--app) only for what cannot
    be looked at without it. Recorded with your name and note; nothing is executed.
    """
    from surefoot.cli import code, driving
    from surefoot.engine.handle import whoami

    with driving.answers_only():
        code.load_app(app)
        run = acting.open_run(settings, run_id)
        who = by or whoami()
        accepted = _accepted(run, witness, who, note, app)
    facts = [{"witness": one.witness, "part": one.part, "what": one.what, "expected": one.expected,
              "found": one.actual} for one in accepted]  # fmt: skip
    if not settings.json:
        for line in (one.line() for one in accepted):
            output.say(text.visible(line))
    names = ", ".join(sorted({one.witness for one in accepted}))
    acting.report(
        settings,
        run,
        {"run": run_id, "accepted": facts, "by": who, "note": note},
        f"recorded: run {run_id} takes {names} as found, said by {who}",
        app=app,
    )


def _accepted(run: Run, witness: str | None, who: str, note: str, app: str | None) -> list[Drift]:
    try:
        return run.take_as_found(witness, by=who, note=note)
    except UsageError as error:
        if "only the code" in str(error) and app is None:
            raise UsageError(f"{error}. Where it does so already, name its module: --app MODULE.") from None
        raise
