"""`surefoot run app:workflow --id ID [ARGS]`: start, or resume, or print the recorded result."""

from __future__ import annotations

from typing import Any

import click

from surefoot.cli.options import Settings, pairs, verb


@click.command()
@click.argument("target", metavar="APP:WORKFLOW")
@click.option("--id", "run_id", required=True, metavar="ID", help="The run's id: one task, one id, over all attempts.")
@click.option("--wait", metavar="TIME", help="How long to wait for an event that has not come, e.g. 10m.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="A label for the run; may be repeated.")
@click.option("--progress/--no-progress", default=True, help="A progress line where the terminal can show one.")
@click.argument("args", nargs=-1)
@verb
def run(
    settings: Settings,
    target: str,
    run_id: str,
    wait: str | None,
    labels: tuple[str, ...],
    progress: bool,
    args: tuple[str, ...],
) -> int:
    """Start the run, resume it if it was cut off, or print its recorded result.

    APP is a module; the current folder is on the import path. An ARG is JSON if it parses as JSON, else a
    string; where the parameter is annotated as an int, a date, a Path and the like, it is read as one. Keywords are
    written name=value. Put -- before arguments that begin with a dash.

    The result is printed as JSON on standard output; everything else, also what the workflow prints, goes to
    standard error. Exit code: 0 done, 1 failed, 2 wrong use, 3 needs a person, 4 store damaged.
    """
    from surefoot.cli import code, execution
    from surefoot.engine.process.config import configure

    if settings.store is not None:
        configure(store=settings.store)  # For the workflow's own calls of surefoot.
    with execution.answers_only():
        workflow = code.load_workflow(target)
    positional, named = code.arguments(workflow, args)
    options: dict[str, Any] = {"store": settings.store, "wait": wait, "labels": pairs(labels, "--label")}
    bound = workflow.using(**options)

    def work() -> Any:
        if not workflow.definition.is_async:
            return bound.run(run_id, *positional, **named)
        import asyncio

        return asyncio.run(bound.run(run_id, *positional, **named))

    return execution.drive(settings, run_id, work, show_progress=progress)
