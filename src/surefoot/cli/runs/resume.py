"""`surefoot runs resume ID --app M`: go on with a run here, after showing what that would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surefoot.cli import confirmation, operators, output
from surefoot.cli.options import Settings, app_option, verb
from surefoot.core.cure import command
from surefoot.core.state import ENDED
from surefoot.errors import Stopped, UsageError
from surefoot.view import outlook

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run
    from surefoot.engine.operate.resume_plan import ResumePlan


@click.command()
@click.argument("run_id", metavar="ID")
@app_option
@confirmation.yes_option
@click.option("--progress/--no-progress", default=True, help="A progress line where the terminal can show one.")
@verb
def resume(settings: Settings, run_id: str, app: str | None, yes: bool, progress: bool) -> int:
    """Go on with a run in this process. Lists the effects that would run or are in doubt, and asks first.

    Without a terminal it needs --yes. If the run would only stop, there is nothing to agree to: exit code 3.
    """
    from surefoot.cli import code, execution

    if app is None:
        raise UsageError(
            f"run {run_id}: which code? Name the module that defines its workflow: --app MODULE, or SUREFOOT_APP."
        )
    with execution.answers_only():
        code.load_app(app)
    run = operators.open_run(settings, run_id)
    if run.status not in ENDED:
        _ask(settings, run, app, yes=yes)
    return execution.drive(settings, run_id, run.resume, show_progress=progress)


def _ask(settings: Settings, run: Run, app: str, *, yes: bool) -> None:
    from surefoot.cli import execution
    from surefoot.engine.declare.registry import registry

    with execution.answers_only():
        try:
            registry.find_for(run.state().created)
        except UsageError as error:
            raise UsageError(f"run {run.id} belongs to workflow {run.workflow!r}; --app {app}: {error}") from None
        found = run.plan()
        seen = operators.page_of(settings, run, app)
    output.tell(*outlook.told(outlook.of_plan(found, seen.headline)))
    if found.stops and not found.next and confirmation.nobody_to_ask(yes=yes):
        raise _needs_a_person(settings, run, found, app)
    confirmation.ask("go on?", yes=yes)


def _needs_a_person(settings: Settings, run: Run, found: ResumePlan, app: str) -> Stopped:
    """The stops of the resume. Nothing would be executed, so `--yes` would not help."""
    from surefoot.core.stops import revive

    stops = run.state().stops
    if stops and [str(stop) for stop in stops] == found.stops:
        return revive(tuple(stops), run.id, run.runtime.store.url)
    again = command("runs resume", run.id, app=app, yes=True, when="what helps, in detail:")
    return Stopped("\n".join(found.stops), run_id=run.id, cures=(again,))
