"""`surefoot runs retry ID --failed | --at ADDR`: failed calls are tried again, after a list of their effects."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import confirmation, operators, output
from surefoot.cli.options import Settings, operator, told_app_option
from surefoot.core.cure import command
from surefoot.core.state import FAILED, STOPPED
from surefoot.core.timer import MICROS, seconds
from surefoot.errors import Stopped, UsageError
from surefoot.view import facts, outlook, text
from surefoot.view.words import command_text

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run
    from surefoot.engine.operate.retries import Reopening

LEFT = 1
MOST_RUNS = 100_000


@click.command()
@click.argument("run_id", metavar="[ID]", required=False)
@click.option("--failed", is_flag=True, help="All calls of the run that failed, also those whose failure was caught.")
@click.option("--at", "addresses", metavar="ADDR", multiple=True, help="Only this call; may be given several times.")
@click.option("--all-failed", is_flag=True, help="In place of an ID: every run that has failed.")
@click.option("--workflow", metavar="NAME", help="With --all-failed: only runs of this workflow.")
@click.option("--since", metavar="TIME", help="With --all-failed: only runs that failed in the last e.g. 2h.")
@confirmation.yes_option
@told_app_option
@operator
def retry(
    settings: Settings, run_id: str | None, failed: bool, addresses: tuple[str, ...], all_failed: bool,
    workflow: str | None, since: str | None, yes: bool, app: str | None, by: str, note: str,
) -> int:  # fmt: skip
    """Have the calls that failed tried again. Everything that succeeded stays. Lists what would run, and asks first.

    Also in a run that is done or has failed; where the workflow itself had the bug, the run is opened again. Steps run
    again, effects under their keys; an effect that failed because nobody knew whether it happened is in doubt. Child
    runs that failed come first. Nothing is executed now: resume the run, or let a worker.
    """
    if all_failed:
        _require(not (run_id or failed or addresses), "--all-failed takes no ID, no --failed and no --at.")
        return _retry_all(settings, workflow, since, yes=yes, by=by, note=note)
    _require(workflow is None and since is None, "--workflow and --since belong to --all-failed.")
    _require(failed != bool(addresses), "say either --failed or --at ADDR.")
    if run_id is None:
        raise UsageError("runs retry: name the run, or say --all-failed.")
    run = operators.open_run(settings, run_id)
    told = run.would_retry(failed=failed or None, at=addresses)
    output.tell(*(line for one in told for line in outlook.told(outlook.of_retry(one))), *_waited_for(settings, run))
    confirmation.ask("try it again?", yes=yes)
    reopened = run.retry(failed=failed or None, at=addresses, by=by, note=note)
    what = ", ".join(reopened) or "the workflow"
    sentence = f"recorded: run {run_id}: {what} to be tried again, said by {by}"
    operators.report(settings, run, facts.retry(reopened, told), sentence, by=by, note=note, app=app)
    return 0


def _require(fits: bool, why: str) -> None:
    if not fits:
        raise UsageError(f"runs retry: {why}")


def _waited_for(settings: Settings, run: Run) -> list[str]:
    """A hint: a parent that has recorded the failure of this run does not ask for it again by itself."""
    from surefoot.engine.operate.retries import child_of_call

    created = run.state().created
    if created is None or not created.child_of:
        return []
    with suppress(Stopped, UsageError):  # The parent is gone, or cannot be read: a command on the parent reports that.
        parent = operators.open_run(settings, created.child_of)
        failed = (past for past in parent.state().calls.values() if past.state.value == "failed")
        if any(child_of_call(parent, past) == run.id for past in failed):
            both = command_text(command("runs retry", parent.id, failed=True), operators.where(settings))
            return [text.visible(f"  its parent has recorded that it failed; to have both tried again: {both}")]
    return []


# --- after an outage: many runs at once ------------------------------------------------------------------


def _retry_all(settings: Settings, workflow: str | None, since: str | None, *, yes: bool, by: str, note: str) -> int:
    age = None if since is None else seconds(since)
    going: list[tuple[Run, list[Reopening]]] = []
    left: list[tuple[str, str]] = []
    for run in _failed_runs(settings, workflow, age):
        try:
            going.append((run, run.would_retry(failed=True)))
        except (UsageError, Stopped) as error:
            left.append((run.id, str(error)))
    covered = {one.run for run, told in going for one in told if one.run != run.id}
    going = [(run, told) for run, told in going if run.id not in covered]  # Children are retried with their parents.
    output.tell(*(line for _, told in going for one in told for line in outlook.told(outlook.of_retry(one))))
    output.tell(*(text.visible(f"left as it is: {why}") for _, why in left))
    if going:
        confirmation.ask(f"try {len(going)} runs again?" if len(going) > 1 else "try it again?", yes=yes)
    done: list[Reopening] = []
    for run, told in going:
        try:
            run.retry(failed=True, by=by, note=note)
        except (UsageError, Stopped) as error:  # Another process changed the run meanwhile.
            left.append((run.id, str(error)))
            output.tell(text.visible(f"left as it is: {error}"))
        else:
            done += told
    said = f"recorded: {len(done)} failed run{'s' * (len(done) != 1)} to be tried again, said by {by}"
    output.answer(settings, facts.retries(done, left), said)
    return LEFT if left else 0


def _failed_runs(settings: Settings, workflow: str | None, age: float | None) -> list[Run]:
    """The runs that failed, and those that stopped for a failure (`on_failure="stop"`), oldest first."""
    from surefoot.engine.operate.handle import runs
    from surefoot.engine.operate.retries import WORKFLOW_FAILED, is_failed

    query: dict[str, Any] = {"workflow": workflow, "limit": MOST_RUNS, "store": settings.store}
    stopped = (run for run in runs(status=STOPPED, **query) if run.row is None or run.row.reason == WORKFLOW_FAILED)
    found = []
    for run in (*runs(status=FAILED, **query), *stopped):
        state = run.state()
        newest = age is None or state.newest_at >= run.runtime.clock.now() - age * MICROS
        if is_failed(state) and newest:
            found.append(run)
    return found[::-1]
