"""`surefoot backup PATH`: a copy of the store, taken while it is in use, and read back whole before it counts."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from surefoot.cli import output, progress
from surefoot.cli.options import Settings, verb
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.store.contract import Store


@click.command()
@click.argument("path", metavar="PATH")
@verb
def backup(settings: Settings, path: str) -> None:
    """Copy the store to PATH while it is in use, and verify the copy.

    PATH is a folder (the copy is named by time, the newest three are kept) or a file that is not there yet. Older
    copies are deleted only after the new one was found whole.

    To restore: stop what uses the store, put the copy in the place of the database (delete its -wal and -shm, leave
    its -anchor), and run surefoot adopt: surefoot notices by itself that the copy is older, and refuses it till then.
    """
    from surefoot.engine.process import config
    from surefoot.store.open import backend_of

    store = config.runtime(settings.store, create=False).store
    with progress.bar(settings) as show:
        watch = partial(show, "copying, then verifying")
        made = backend_of(store.url).back_up(store, path, verify=_wrong, now=datetime.now(UTC), watch=watch)
    told = f"{made.path}: {made.bytes / 1e6:,.1f} MB, up to record {made.records} of the store; verified"
    output.answer(settings, facts.backup(made), told)
    if not settings.json:
        output.tell(*(text.visible(f"removed the older {old}") for old in made.removed))


def _wrong(copy: Store) -> str:
    from surefoot.engine.upkeep.verification import verify_store

    flaws = verify_store(copy).flaws
    more = f" (and {len(flaws) - 1} more)" if len(flaws) > 1 else ""
    return f"{flaws[0]}{more}" if flaws else ""
