"""`surefoot export ID`: a run as one file that proves itself; `--check FILE` checks such a file against its seals."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from surefoot.cli import output
from surefoot.cli.flaws import DAMAGED, many
from surefoot.cli.options import Settings, verb
from surefoot.errors import UsageError
from surefoot.view import facts

if TYPE_CHECKING:
    from surefoot.engine.upkeep.exports import Exported


@click.command()
@click.argument("run_id", metavar="[ID]", required=False)
@click.option(
    "--output", "path", metavar="FILE", help="Write to this file, whole or not at all. Default: standard output."
)
@click.option("--thread", metavar="THREAD", help="A thread of an adapter (LangGraph), instead of a run.")
@click.option("--damaged", is_flag=True, help="Export a damaged run as it is, as evidence; the file says so.")
@click.option("--check", "checked", metavar="FILE", help="Check a file that was exported. Needs no store.")
@verb
def export(
    settings: Settings, run_id: str | None, path: str | None, thread: str | None, damaged: bool, checked: str | None
) -> int:
    """Write a run to one file of JSON lines: every record with its seal, every part, counts and a checksum.

    The file holds data only. It proves by itself that it is whole: surefoot export --check FILE. A run that is
    damaged is refused (exit code 4), unless --damaged says that the damage is what is wanted.
    """
    from surefoot.engine.process import config
    from surefoot.engine.upkeep import exports

    named = [given for given in (run_id, thread, checked) if given is not None]
    if len(named) != 1 or (checked is not None and (path is not None or damaged)):
        raise UsageError("say either the ID of a run to export, or --thread THREAD, or --check FILE.")
    if checked is not None:
        return _report(settings, exports.check_file(checked), f"{checked} is")
    store = config.runtime(settings.store, create=False).store
    journal = _journal(run_id, thread)
    if path is not None:
        made = exports.export_to(store, journal, path, damaged=damaged)
        return _report(settings, made, f"{path} has", complain=False)
    exports.export(store, journal, sys.stdout.buffer.write, damaged=damaged)
    sys.stdout.buffer.flush()
    return 0


def _journal(run_id: str | None, thread: str | None) -> str:
    from surefoot.engine import threads
    from surefoot.store.threads import PREFIX

    if thread is None:
        return str(run_id)
    threads.check_id(thread)
    return PREFIX + thread


def _report(settings: Settings, found: Exported, subject: str, *, complain: bool = True) -> int:
    from surefoot.engine.upkeep.verification import called

    told = f"{called(found.run)}: {many(found.records, 'record')}, {many(found.parts, 'part')}"
    usable = f"of a damaged run: {many(found.valid, 'record')} from the first on can be used"
    output.answer(settings, facts.export(found), f"{subject} {told}; {'whole' if found.whole else usable}")
    return DAMAGED if complain and not found.whole else 0
