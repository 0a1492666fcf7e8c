"""`surefoot adopt --reason TEXT`: accept a store that is older than it once was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surefoot.cli import confirmation, output
from surefoot.cli.options import Settings, by_option, verb
from surefoot.errors import JournalRegressed, UsageError
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.engine.upkeep.adoption import Adoption


@click.command()
@click.option("--reason", metavar="TEXT", required=True, help="Why the older state is accepted; kept in the store.")
@by_option
@confirmation.yes_option
@verb
def adopt(settings: Settings, reason: str, by: str, yes: bool) -> None:
    """Accept a store that lost records (an older copy put back, a lost log). Lists the price, and asks first.

    Runs that had not ended go on from where the older state stands, and every effect without a record is in doubt.
    """
    from surefoot.engine.process import config
    from surefoot.engine.process.clock import SystemClock
    from surefoot.engine.upkeep import adoption
    from surefoot.store.generation_journal import checkpoints
    from surefoot.store.open import open_regressed, shown
    from surefoot.store.threads import threads

    if not reason.strip():
        raise UsageError("--reason must say why: somebody will read it.")
    url = config.store_url(settings.store)
    try:
        config.runtime(settings.store, create=False)
    except JournalRegressed as why:
        output.tell(text.visible(why.summary))
    else:
        raise UsageError(f"{shown(url)} has lost nothing: there is nothing to adopt.")
    store = open_regressed(url)
    try:
        found = adoption.look(store)
        names = store.names()
        kept, chats = checkpoints(names), threads(names)
        output.tell(*lines(found, kept), *of_threads(chats))
        confirmation.ask("accept it?", yes=yes)
        adoption.adopt(store, SystemClock(), reason=reason, by=by)
    finally:
        store.close()
    output.answer(settings, facts.adoption(found, kept, chats), "adopted: the store can be used again.")


def lines(found: Adoption, checkpoints: list[str]) -> list[str]:
    lost = f"{found.expected - found.found} records are gone" if found.expected > found.found else "records may be gone"
    told = [
        f"{lost}. Runs that were created after this state are unknown to it: they would start afresh.",
        f"{len(found.unfinished)} unfinished runs would go on from here, with every effect that has no record in doubt:",
        *_some(found.unfinished),
    ]
    if found.hopeless:
        told.append(f"no valid entry, stays refused: {', '.join(found.hopeless[:50])}")
    if checkpoints:
        told.append(
            f"{len(checkpoints)} checkpoints may have lost generations (those made after this state are unknown): load() "
            "warns and gives an older state, and the numbers of new ones skip ahead:"
        )
        told += _some(checkpoints)
    return [text.visible(line) for line in told]


def of_threads(threads: list[str]) -> list[str]:
    if not threads:
        return []
    told = f"{len(threads)} threads may have lost checkpoints: their graphs warn, and go on from older ones:"
    return [text.visible(line) for line in (told, *_some(threads))]


def _some(names: list[str]) -> list[str]:
    more = [f"… and {len(names) - 50} more"] if len(names) > 50 else []
    return [f"  {name}" for name in (*names[:50], *more)]
