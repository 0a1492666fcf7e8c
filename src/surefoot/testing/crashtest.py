"""`surefoot crashtest app:workflow [ARGS]`: kill it at every boundary, resume, and report what did not hold.

A verb of the command line that is in the kit: the command finds it by its name in the table of verbs, and
nothing below the kit imports it.
"""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING

import click

from surefoot.cli import output
from surefoot.cli.options import Settings, pairs, verb
from surefoot.cli.progress import FIRST_LOOK_SECONDS
from surefoot.view import facts

if TYPE_CHECKING:
    from surefoot.testing.matrix import Progress, Report

NOT_HELD = 1
SECONDS = 60.0


@click.command()
@click.argument("target", metavar="APP:WORKFLOW")
@click.argument("args", nargs=-1)
@click.option("--damage", is_flag=True, help="Damage the store of each killed run as well: cut, flip, zero, put back.")
@click.option("--at", metavar="BOUNDARY", help="Only there, as the report names it.")
@click.option("--answer", "given", multiple=True, metavar="NAME=JSON", help="What a person answers; may be repeated.")
@click.option(
    "--exclude",
    multiple=True,
    metavar="GLOB",
    help="Files that are not compared: '*.csv', 'cache'; may be repeated. A *.log that no call opens is noted only.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=SECONDS,
    show_default=True,
    help="How long a run without any crash may take.",
)
@verb
def crashtest(
    settings: Settings,
    target: str,
    args: tuple[str, ...],
    damage: bool,
    at: str | None,
    given: tuple[str, ...],
    exclude: tuple[str, ...],
    seconds: float,
) -> int:
    """Prove that a workflow survives a crash at every point.

    ATTENTION: your effects are really executed, dozens of times. Only the files of the current folder are copies: give
    it fakes for whatever goes over the network or outside of that folder (mail, payments, databases, models).

    It is run twice without a crash, to compare and to find every boundary (each durable write, each call, each wait),
    then once for each with a real SIGKILL there, resumed, and compared with the uninterrupted run: same result, same
    files, each effect at most once. Every run works in a fresh copy of the current folder, and with a store of its own;
    sleeps take no time, approvals are given unless --answer says otherwise. ARGS are written as for `surefoot run`.

    Where every kill held, four things more are tried: the answer of an effect is lost, an operation inside it fails,
    what it has started lands after the kill, and somebody else edits a file that the run relies on.

    Exit code: 0 everything held, 1 not everything, 2 there is nothing to explore (it fails, does not end, or never
    comes to where it is to be killed), 130 and 143 ended by Ctrl-C or SIGTERM.
    """
    if settings.store is not None:
        output.tell("crashtest makes a store of its own for every scenario: --store is not used.")
    from surefoot.cli import code, execution
    from surefoot.testing.matrix import explore
    from surefoot.testing.scenarios import Task
    from surefoot.testing.worlds import observed

    with execution.answers_only():
        workflow = code.load_workflow(target)
    positional, named = code.arguments(workflow, args)
    task = Task(workflow, tuple(positional), named, observed(None, exclude), _answers(given), seconds=seconds)
    options = [word for one in given for word in ("--answer", one)]
    options += [word for one in exclude for word in ("--exclude", one)]
    options += [] if seconds == SECONDS else ["--seconds", str(seconds)]

    def again(at: str) -> str:
        return shlex.join(["surefoot", "crashtest", target, *options, "--at", at, *(["--", *args] if args else [])])

    signals = execution.Signals()
    try:
        with signals:
            report = explore(task, damage=damage, at=at, again=again, progress=_progress())
    except KeyboardInterrupt:
        return signals.exit_code
    if settings.json:
        output.say_json(facts.crashtest(report))
    else:
        _tell(report)
    return 0 if report.held else NOT_HELD


def _answers(given: tuple[str, ...]) -> dict[str, object]:
    from surefoot.cli import code

    form = "NAME=JSON, with a question's address or text, or an event's name"
    return {name: code.parse_word(value)[1] for name, value in pairs(given, "--answer", form).items()}


def _progress() -> Progress:
    """One line on the terminal that is updated, and removed at the end. Nothing if standard error is a file."""
    from surefoot.testing.matrix import unseen

    if not sys.stderr.isatty():
        return unseen
    began = time.monotonic()

    def show(done: int, of: int) -> None:
        if time.monotonic() - began > FIRST_LOOK_SECONDS:
            told = "" if done == of else f"killed and resumed at {done} of {of} boundaries"
            sys.stderr.write(f"\r{told}\x1b[K")
            sys.stderr.flush()

    return show


def _tell(report: Report) -> None:
    from surefoot.cli import paint
    from surefoot.testing.matrix import rows

    table = rows(report)
    if table:
        paint.draw(("BOUNDARY", "KILLS", "HELD", "HOW THE RESUME ENDED"), table, flexible=(3,))
        output.say()
    output.say(str(report))
