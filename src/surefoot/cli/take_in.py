"""`surefoot import FILE`: a run that was exported goes into a store."""

from __future__ import annotations

import os

import click

from surefoot.cli import confirmation, output
from surefoot.cli.flaws import many
from surefoot.cli.options import Settings, operator
from surefoot.view import facts


@click.command("import")
@click.argument("path", metavar="FILE")
@click.option("--go-on", is_flag=True, help="It had not ended, and is driven nowhere else: it goes on from here.")
@confirmation.yes_option
@operator
def import_(settings: Settings, path: str, go_on: bool, yes: bool, by: str, note: str) -> None:
    """Take a file that `surefoot export` wrote into the store, after every seal and part of it was checked.

    A run that had ended is taken as it is. One that had not may have gone on since: it needs --go-on, and then every
    effect without a record is in doubt. A run of that name that is there already is left alone.
    """
    from surefoot.engine.process import config
    from surefoot.engine.upkeep import imports
    from surefoot.engine.upkeep.verification import called

    runtime = config.runtime(settings.store, create=True)
    found = imports.look(runtime, path, go_on=go_on)
    one = found.found
    output.tell(f"{called(one.run)}: {many(one.entries, 'entry')}, {one.status or 'no run'}")
    confirmation.ask(f"take it into {runtime.store.url}?", yes=yes)
    where = f"file:{os.path.abspath(path)}"
    imports.carry_out(runtime, found, where, by=by, note=note)
    output.answer(settings, facts.taken_in(one), f"{called(one.run)} is in {runtime.store.url}.")
