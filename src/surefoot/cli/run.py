"""`surefoot run app:workflow --id ID [ARGS]`: start, or resume, or print the recorded result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from surefoot.cli.options import Settings, pairs, verb

F = TypeVar("F", bound=Callable[..., Any])


def run_options(fn: F) -> F:
    """What a run is given, by `surefoot run` and by a script's own command line (`script.py`) alike."""
    for given in (
        click.argument("args", nargs=-1),
        click.option("--progress/--no-progress", default=True, help="A progress line where the terminal can show one."),
        click.option(
            "--label", "labels", multiple=True, metavar="NAME=VALUE", help="A label for the run; may be repeated."
        ),
        click.option("--wait", metavar="TIME", help="How long to wait for an event that has not come, e.g. 10m."),
        click.option(
            "--id", "run_id", required=True, metavar="ID", help="The run's id: one task, one id, over all attempts."
        ),
    ):
        fn = given(fn)
    return fn


@click.command()
@click.argument("target", metavar="APP:WORKFLOW")
@run_options
@verb
def run(settings: Settings, target: str, **given: Any) -> int:
    """Start the run, resume it if it was cut off, or print its recorded result.

    APP is a module; the current folder is on the import path. An ARG is JSON if it parses as JSON, else a
    string; where the parameter is annotated as an int, a date, a Path and the like, it is read as one. Keywords are
    written name=value. Put -- before arguments that begin with a dash.

    The result is printed as JSON on standard output; everything else, also what the workflow prints, goes to
    standard error. Exit code: 0 done, 1 failed, 2 wrong use, 3 needs a person, 4 store damaged.
    """
    from surefoot.cli import code, execution

    keep_store(settings)
    with execution.answers_only():
        workflow = code.load_workflow(target)
    return drive(settings, workflow, **given)


def keep_store(settings: Settings) -> None:
    """The store that was named is also that of the workflow's own calls of surefoot."""
    from surefoot.engine.process.config import configure

    if settings.store is not None:
        configure(store=settings.store)


def drive(
    settings: Settings,
    workflow: Any,
    *,
    run_id: str,
    wait: str | None,
    labels: tuple[str, ...],
    progress: bool,
    args: tuple[str, ...],
) -> int:
    """Bring the run of that workflow to its end, and return the exit code."""
    from surefoot.cli import code, execution

    positional, named = code.arguments(workflow, args)
    options: dict[str, Any] = {"store": settings.store, "wait": wait, "labels": pairs(labels, "--label")}
    bound = workflow.using(**options)

    def work() -> Any:
        if not workflow.definition.is_async:
            return bound.run(run_id, *positional, **named)
        import asyncio

        return asyncio.run(bound.run(run_id, *positional, **named))

    return execution.drive(settings, run_id, work, show_progress=progress)
