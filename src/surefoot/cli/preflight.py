"""`surefoot preflight --app M`: which unfinished runs would this code strand? To run before it is deployed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from surefoot.cli import output, progress
from surefoot.cli.options import Settings, verb
from surefoot.view import facts

if TYPE_CHECKING:
    from surefoot.cli.findings import Told
    from surefoot.cli.rehearsals import Rehearsed

STRANDED_EXIT, DAMAGED_EXIT = 3, 4
WORTH_A_BAR = 20
"""Fewer runs than this are rehearsed before a person could read a bar."""


@click.command()
@click.option(
    "--app",
    "apps",
    metavar="MODULE",
    multiple=True,
    required=True,
    envvar="SUREFOOT_APP",
    show_envvar=True,
    help="A module that defines workflows, as it is about to be deployed; may be given several times.",
)
@click.option("--strict", is_flag=True, help="Exit code 3 also if a run would only perhaps be stranded.")
@verb
def preflight(settings: Settings, apps: tuple[str, ...], strict: bool) -> int:
    """Tell which unfinished runs this code could not go on with, and why, before it is deployed.

    Every unfinished run is replayed from its journal up to the calls that would be executed. Nothing is executed and
    nothing is written. Exit code 0: none would be stranded; 3: some would be; 4: some are damaged. Runs that wait for
    a person whatever the code are listed, and do not count.

    Perhaps stranded: the replay ended too early to tell. It is a line and no failure (with --strict it is one): should it
    be so, the run stops before any effect is executed. What would be kept, run again or filled in is listed run by run.

    A run whose code hangs is given up after 60 seconds, and the others go on.
    """
    from surefoot.cli import rehearsals
    from surefoot.cli.execution import Signals

    try:
        with Signals(), progress.bar(settings) as show:
            found = rehearsals.rehearse(settings, apps, lambda done, of: _show(show, done, of))
    except rehearsals.Refused as refused:
        if settings.json:
            output.say_json(facts.failure(refused.facts))
        else:
            output.tell(*refused.lines)
        return refused.exit_code
    found.runs.sort(key=lambda one: facts.VERDICTS.index(one.verdict))
    code = exit_code(found.runs, strict=strict)
    what = facts.preflight(apps, found.store, [one.facts for one in found.runs], exit_code=code)
    output.answer(settings, what, *lines(apps, found))
    return code


def _show(show: Callable[[str, int, int], None], done: int, of: int) -> None:
    if of >= WORTH_A_BAR:
        show(f"rehearsing  {done + 1} of {of} runs", done, of)


def exit_code(found: list[Told], *, strict: bool) -> int:
    verdicts = {one.verdict for one in found}
    if "damaged" in verdicts:
        return DAMAGED_EXIT
    return STRANDED_EXIT if verdicts & {"stranded", "perhaps stranded" if strict else "stranded"} else 0


# --- for people ------------------------------------------------------------------------------------


def lines(apps: tuple[str, ...], found: Rehearsed) -> list[str]:
    """The findings in words: the problems, run by run; of runs that go on or only wait, the number."""
    told = [line for one in found.runs if one.lines for line in (*one.lines, "")]
    return [*told, summary(apps, found)]


def summary(apps: tuple[str, ...], found: Rehearsed) -> str:
    code = ", ".join(apps)
    if not found.runs:
        return f"{found.store} has no unfinished runs: {code} can strand none."
    counts = Counter(one.verdict for one in found.runs)
    parts = [
        f"{counts[verdict]} {words}"
        for verdict, words in (
            ("goes on", f"would go on with {code}"),
            ("stranded", "would be stranded by it"),
            ("perhaps stranded", "would perhaps be stranded by it"),
            ("damaged", "damaged"),
            ("in doubt", "in doubt, whatever the code"),
            ("waits", "waiting for a person or an event, whatever the code"),
        )
        if counts[verdict]
    ]
    return f"{len(found.runs)} unfinished run{'s' if len(found.runs) > 1 else ''} in {found.store}: {', '.join(parts)}."
