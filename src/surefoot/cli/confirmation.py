"""Verbs that change what is stored show what they would do, and ask; without a terminal they need `--yes`."""

from __future__ import annotations

import sys

import click

from surefoot.cli import output
from surefoot.errors import UsageError

DECLINED = 1

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def nobody_to_ask(*, yes: bool) -> bool:
    """Whether nobody has agreed, and nobody can be asked."""
    return not yes and not sys.stdin.isatty()


def ask(question: str, *, yes: bool) -> None:
    """Go on if the answer is yes; else the command ends here."""
    if yes:
        return
    if nobody_to_ask(yes=yes):
        raise UsageError("there is no terminal to ask at. Look at what is listed above; then add --yes.")
    if not click.confirm(question, err=True):
        output.tell("nothing was done.")
        raise click.exceptions.Exit(DECLINED)
