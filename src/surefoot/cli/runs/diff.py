"""`surefoot runs diff A B`: two runs, call by call. It only reports; it does not judge whether a difference is bad."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surefoot.cli import operators, output, paint
from surefoot.cli.options import Settings, told_app_option, verb
from surefoot.core.history import Past
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.engine.operate.comparison import Comparison, Pair

WIDTH = 60
HEADINGS = ("CALL", "KIND", "VERDICT", "A", "B")


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--all", "everything", is_flag=True, help="Also list the calls that are the same.")
@told_app_option
@verb
def diff(settings: Settings, a: str, b: str, everything: bool, app: str | None) -> None:
    """Compare two runs call by call: same, differs (arguments, outcome, result), only in A, only in B.

    Calls are matched by address. Times, attempts, processes and keys are not compared. The exit code is 0 either way.
    """
    from surefoot.engine.operate.comparison import compare

    ours, theirs = operators.open_run(settings, a), operators.open_run(settings, b)
    found = compare(ours.state(), theirs.state())
    if settings.json:
        output.say_json(facts.comparison(a, b, found))
    else:
        draw(a, b, found, everything=everything)


def draw(a: str, b: str, found: Comparison, *, everything: bool) -> None:
    from surefoot.engine.operate.comparison import DIFFERS, ONLY_A, ONLY_B, SAME

    runs = f"the runs differ in {', '.join(found.differs)}" if found.differs else "same workflow, arguments and outcome"
    output.say(text.visible(f"A = {a}, B = {b}: {runs}"))
    output.say(
        f"calls: {found.count(SAME)} same, {found.count(DIFFERS)} differ, "
        f"{found.count(ONLY_A)} only in A, {found.count(ONLY_B)} only in B"
    )
    rows = [_row(pair) for pair in found.calls if everything or pair.verdict != SAME]
    if rows:
        paint.draw(HEADINGS, rows, flexible=(3, 4))


def _row(pair: Pair) -> tuple[str, ...]:
    kind = " / ".join(dict.fromkeys(past.kind for past in (pair.a, pair.b) if past is not None))
    verdict = f"differs: {', '.join(pair.differs)}" if pair.differs else pair.verdict
    shown = [text.shorten(_told(past, pair.differs), WIDTH) for past in (pair.a, pair.b)]
    return (text.visible(pair.address), kind, verdict, *shown)


def _told(past: Past | None, differs: list[str]) -> str:
    """The text beside the other call: the arguments if they differ, and the outcome of the call."""
    if past is None:
        return ""
    asked = f"{facts.recorded(past.args)} -> " if "arguments" in differs else ""
    return asked + (facts.recorded(past.value) or facts.raised(past) or past.state.value)
