"""The command line of a script that ends with `sf.main(workflow)`.

It is `surefoot run` without the name of the workflow: the same options, the same answers, the same exit codes. Only the
command that goes on is another one: the script's.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import click

from surefoot.cli import code
from surefoot.cli import run as run_verb
from surefoot.cli.main import called
from surefoot.cli.options import Settings, verb
from surefoot.errors import UsageError

HELP = """{about}

The workflow is {workflow}. The run is started, or resumed if it was cut off; if it is done, its recorded result is
printed. An ARG is JSON if it parses as JSON, else a string; keywords are written name=value. Put -- before arguments
that begin with a dash.

The result is printed as JSON on standard output, everything else goes to standard error. Exit code: 0 done, 1 failed,
2 wrong use, 3 needs a person, 4 store damaged, 130 or 143 ended by Ctrl-C or SIGTERM.
"""


def main(workflow: Any) -> int:
    """Run the script's command line and return its exit code."""
    settings = Settings(sys.argv[1:], script=_as_typed())
    return called(_command(workflow), settings, Path(sys.argv[0]).name)


def _as_typed() -> list[str]:
    """The interpreter, its options, the script or `-m`, and all words, also those that the script has taken away since."""
    return list(sys.orig_argv) or [sys.executable, *sys.argv]


def _command(workflow: Any) -> click.Command:
    @click.command(help=_help(workflow))
    @run_verb.run_options
    @verb
    def script(settings: Settings, **given: Any) -> int:
        _require_workflow(workflow)
        _require_no_loop(workflow)
        run_verb.keep_store(settings)
        return run_verb.drive(settings, workflow, **given)

    return script


def _help(workflow: Any) -> str:
    if not code.is_workflow(workflow):
        return ""
    fn = workflow.definition.fn
    about = (inspect.getdoc(fn) or f"Workflow {workflow.name}.").partition("\n\n")[0]
    return HELP.format(about=about, workflow=f"{workflow.name}{inspect.signature(fn)}")


def _require_workflow(workflow: Any) -> None:
    if not code.is_workflow(workflow):
        raise UsageError(
            f"sf.main({workflow!r}): that is not a workflow. Decorate the function with @sf.workflow, and give sf.main the "
            "function itself, without calling it."
        )


def _require_no_loop(workflow: Any) -> None:
    """It is the last line of a script, not a call in a program: an async workflow gets an event loop of its own."""
    if not workflow.definition.is_async:
        return
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        f"sf.main({workflow.name}) was called inside an event loop, and starts one of its own. Call it at the end of the script, "
        "outside of async code."
    )
