"""`surefoot adopt --reason TEXT`: accept a store that is older than it once was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surefoot.cli import confirmation, output
from surefoot.cli.options import Settings, common
from surefoot.errors import JournalRegressed, UsageError
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.engine.upkeep.adoption import Adoption


@click.command()
@click.option("--reason", metavar="TEXT", required=True, help="Why the older state is accepted; kept in the store.")
@click.option("--by", metavar="NAME", help="Who says so. Default: the operating-system user.")
@confirmation.yes_option
@common
@click.pass_obj
def adopt(settings: Settings, reason: str, by: str | None, yes: bool) -> int:
    """Accept a store that lost records (an older copy put back, a lost log). Lists the price, and asks first.

    Runs that had not ended go on from where the older state stands, and every effect without a record is in doubt.
    """
    from surefoot.engine.operate.handle import whoami
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
        if not confirmation.agreed("accept it?", yes=yes):
            return confirmation.DECLINED
        adoption.adopt(store, SystemClock(), reason=reason, by=by or whoami())
    finally:
        store.close()
    if settings.json:
        output.say_json(facts.adoption(found, kept, chats))
    else:
        output.say("adopted: the store can be used again.")
    return 0


def lines(found: Adoption, checkpoints: list[str]) -> list[str]:
    lost = f"{found.expected - found.found} records are gone" if found.expected > found.found else "records may be gone"
    told = [
        f"{lost}. Runs that were created after this state are unknown to it: they would start afresh.",
        f"{len(found.unfinished)} unfinished runs would go on from here, with every effect that has no record in doubt:",
        *(f"  {run}" for run in found.unfinished[:50]),
    ]
    if len(found.unfinished) > 50:
        told.append(f"  … and {len(found.unfinished) - 50} more")
    if found.hopeless:
        told.append(f"no valid entry, stays refused: {', '.join(found.hopeless[:50])}")
    if checkpoints:
        told.append(
            f"{len(checkpoints)} checkpoints may have lost generations (those made after this state are unknown): load() "
            "warns and gives an older state, and the numbers of new ones skip ahead:"
        )
        told += [f"  {name}" for name in checkpoints[:50]]
    if len(checkpoints) > 50:
        told.append(f"  … and {len(checkpoints) - 50} more")
    return [text.visible(line) for line in told]


def of_threads(threads: list[str]) -> list[str]:
    if not threads:
        return []
    told = [f"{len(threads)} threads may have lost checkpoints: their graphs warn, and go on from older ones:"]
    told += [f"  {name}" for name in threads[:50]]
    told += [f"  … and {len(threads) - 50} more"] * (len(threads) > 50)
    return [text.visible(line) for line in told]
