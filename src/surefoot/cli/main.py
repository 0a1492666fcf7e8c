"""The `surefoot` command: finds the verb, and turns its result or error into text and an exit code.

A verb's module is imported when the verb is used, and what is slow to import (the engine, rich, asyncio) is
imported inside the functions that need it: `surefoot --help` costs little more than Python itself.
Exit codes come from the error tree (`errors.py`); a person never sees a traceback of surefoot's own errors.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from surefoot.cli import output
from surefoot.cli.options import LazyGroup, Settings, common
from surefoot.errors import Stopped, SurefootError, UsageError

INTERRUPTED = 130

VERBS = {
    "demo": ("surefoot.cli.demo.verb:demo", "See it work: an agent is killed with SIGKILL, and brought home."),
    "run": ("surefoot.cli.run:run", "Start a run, or resume it, or print its recorded result."),
    "worker": ("surefoot.cli.worker:worker", "Drive the runs of a store until told to stop."),
    "inbox": ("surefoot.cli.inbox:inbox_", "What waits for a person, and what somebody should know."),
    "console": ("surefoot.cli.console:console_", "A web page of the same, and an HTTP API."),
    "runs": ("surefoot.cli.runs.group:runs", "Look at runs, resume and cancel them."),
    "preflight": (
        "surefoot.cli.preflight:preflight",
        "Which unfinished runs would this code strand?",
    ),
    "lint": ("surefoot.cli.lint:lint", "What looks wrong in this code? Reads it, never runs it."),
    "crashtest": ("surefoot.testing.crashtest:crashtest", "Kill a workflow at every point, resume it, and compare."),
    "repair": ("surefoot.cli.repair:repair", "Let a damaged run go on from its longest valid prefix."),
    "adopt": ("surefoot.cli.adopt:adopt", "Accept a store that is older than it once was."),
    "match": ("surefoot.cli.match:match", "Say which recorded call a call of changed code is."),
    "settle": ("surefoot.cli.settle:settle", "Say whether an effect that is in doubt happened."),
    "approve": ("surefoot.cli.approve:approve", "Say yes to a question of a run."),
    "deny": ("surefoot.cli.deny:deny", "Say no to a question of a run."),
    "answer": ("surefoot.cli.answer:answer", "Answer a question of a run."),
    "send-event": ("surefoot.cli.send_event:send_event", "Send an event to a run."),
    "accept": ("surefoot.cli.accept:accept", "Accept what has changed outside since a run left it."),
    "inspect": ("surefoot.cli.inspect:inspect", "Look into a file that may be damaged, without touching it."),
    "verify": ("surefoot.cli.verify:verify", "Is everything whole? Reads all of it, changes nothing."),
    "doctor": ("surefoot.cli.doctor:doctor", "Does this place keep what is promised? Disk, locks, clock."),
    "prune": ("surefoot.cli.prune:prune", "Delete runs that ended long ago; each leaves a tombstone."),
    "backup": ("surefoot.cli.backup:backup", "Copy the store while it is in use, and verify the copy."),
    "export": ("surefoot.cli.export:export", "Write a run to one file that proves itself."),
    "import": ("surefoot.cli.take_in:import_", "Take a run that was exported into the store."),
    "restore": ("surefoot.cli.restore:restore", "Bring back a run that was pruned into a bucket."),
    "copy": ("surefoot.cli.copy:copy", "Move runs, checkpoints and threads to another store."),
    "mcp": ("surefoot.cli.mcp:mcp", "Let an agent look at runs, over MCP. Reading only."),
    "langgraph": ("surefoot.cli.langgraph.group:langgraph", "Threads of LangGraph: import them from its own savers."),
}

EXIT_CODES = {
    "0": "Done, or as it should be.",
    "1": "The workflow failed or was cancelled, the store cannot be reached, not everything held, or you said no.",
    "2": "Wrong use: the command cannot be carried out as it was given. Nothing was done.",
    "3": "A person is needed: the run stopped, or would stop. The message says what helps.",
    "4": "The store is damaged, or does not keep what it was given.",
    "130, 143": "Ended by Ctrl-C or SIGTERM. The run is safe.",
}
"""The same for every verb, so that scripts can tell a wrong command from a run that needs a person."""


def _version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from surefoot import __version__

        output.say(f"surefoot {__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, verbs=VERBS, exit_codes=EXIT_CODES, invoke_without_command=True)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@common
@click.pass_context
def surefoot(ctx: click.Context) -> None:
    """Long-running agent workflows that survive crashes: never silently twice, never silently wrong."""
    if ctx.invoked_subcommand is None:
        output.say(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return called(surefoot, Settings(list(sys.argv[1:] if argv is None else argv)), "surefoot")


def called(command: click.Command, settings: Settings, name: str) -> int:
    """The exit code of a command, and its error as text: for `surefoot`, and for a script of somebody's own."""
    output.never_fail_on_characters()
    try:
        code = command.main(args=list(settings.argv), prog_name=name, standalone_mode=False, obj=settings)
    except SurefootError as error:
        _name_store(settings, error)
        return output.complain(settings, error, exit_code=error.exit_code)
    except click.ClickException as error:
        return output.complain(settings, UsageError(_usage(error)), exit_code=UsageError.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return int(code or 0)


def _name_store(settings: Settings, error: SurefootError) -> None:
    """The commands that help name the store of this command."""
    if isinstance(error, Stopped) and not error.store:
        from surefoot.engine.process.config import store_url
        from surefoot.store.open import shown

        error.name_store(shown(store_url(settings.store)))


def _usage(error: click.ClickException) -> str:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message}\n  {context.get_usage()}\n  help: {context.command_path} --help"
