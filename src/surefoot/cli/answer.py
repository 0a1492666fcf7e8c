"""`surefoot answer ID NAME JSON`: a person's answer to a question of a run."""

from __future__ import annotations

from typing import Any

import click

from surefoot.cli.options import Settings
from surefoot.cli.questions import answering, give
from surefoot.errors import UsageError


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("run_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("value", metavar="JSON")
@answering
def answer(settings: Settings, run_id: str, name: str, value: str, **said: Any) -> None:
    """Answer a question of a run. A text needs its quotes: surefoot answer t-1 'ask#1' '"blue"'.

    `surefoot runs show ID` shows what is asked and what an answer must look like. One that does not fit is refused with
    the reason; the first that does counts. It is recorded with your name and note, and nothing is executed by answering.
    """
    from surefoot.cli.code import parse_word

    is_json, given = parse_word(value)
    if not is_json:
        raise UsageError(f"{value[:40]!r} is not JSON. A text needs its quotes: '\"…\"'.")
    give(settings, run_id, name, given, "answered", **said)
