"""`surefoot match ID ADDR --is OLD | --new | --keep | --rerun`: matches calls of changed code with recorded ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import operators, output
from surefoot.cli.options import Settings, app_option, operator
from surefoot.errors import UsageError
from surefoot.view import facts

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run


@click.command()
@click.argument("run_id", metavar="ID", required=False)
@click.argument("address", metavar="ADDR", required=False)
@click.option("--is", "is_", metavar="OLD", help="It is this recorded call, renamed or moved.")
@click.option("--new", is_flag=True, help="It is new: no recorded effect is this one.")
@click.option(
    "--keep", is_flag=True, help="What is on record stands: its arguments have changed, or the code goes on without it."
)
@click.option("--rerun", is_flag=True, help="Its arguments have changed, and the step runs again.")
@click.option("--all", "every", is_flag=True, help="For every run that stands at the same stop; needs --workflow.")
@click.option("--workflow", metavar="W", help="With --all: whose runs.")
@app_option
@operator
def match(
    settings: Settings,
    run_id: str | None,
    address: str | None,
    is_: str | None,
    new: bool,
    keep: bool,
    rerun: bool,
    every: bool,
    workflow: str | None,
    app: str | None,
    by: str,
    note: str,
) -> None:
    """Say what a call of changed code is, for a run that stands at `CodeChanged`.

    ADDR is the call as the code asks for it now, or with --keep the recorded one, as the stop names it; * stands for any
    characters. With --all --workflow W
    there is no ID: surefoot match --all --workflow W ADDR --is OLD. Recorded with your name and note; nothing is executed.
    """
    if every:
        address, run_id = address or run_id, None
    if address is None or every != (workflow is not None) or (run_id is None) != every:
        raise UsageError("say surefoot match ID ADDR …, or surefoot match --all --workflow W ADDR …")
    said = {"is_": is_, "new": new, "keep": keep, "rerun": rerun, "by": by, "note": note}
    how = f"is {is_}" if is_ is not None else "is new" if new else "is kept" if keep else "runs again"
    if run_id is not None:
        run = operators.open_run(settings, run_id)
        run.match(address, **said)  # type: ignore[arg-type]
        sentence = f"recorded: run {run_id}, {address} {how}, said by {by}"
        operators.report(settings, run, facts.match(address, how), sentence, by=by, note=note, app=app)
        return
    matched = _match_all(_standing(settings, workflow or ""), workflow or "", address, said)
    told = f"recorded for {len(matched)} run{'' if len(matched) == 1 else 's'}: {address} {how}, said by {by}"
    what = facts.matches(matched, address, how, by=by, note=note)
    output.answer(settings, what, told, *(f"  {one}" for one in matched))


def _standing(settings: Settings, workflow: str) -> list[Run]:
    """The runs of that workflow that stopped at changed code."""
    from surefoot.engine.operate.handle import runs

    found: list[Run] = []
    before = ""
    while page := runs(status="stopped", workflow=workflow, limit=500, before=before, store=settings.store):
        found += page
        before = page[-1].id
    return [run for run in found if any(stop.reason == "CodeChanged" for stop in run.state().stops)]


def _match_all(standing: list[Run], workflow: str, address: str, said: dict[str, Any]) -> list[str]:
    """The runs that stopped at such a call; the others are left alone. To match none is a mistake."""
    matched: list[str] = []
    refused = f"no run of workflow {workflow} stands at changed code."
    for run in standing:
        try:
            run.match(address, **said)
            matched.append(run.id)
        except UsageError as error:
            refused = str(error)
    if not matched:
        raise UsageError(f"nothing was recorded: {refused}")
    return matched
