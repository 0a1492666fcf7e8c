"""`surefoot copy --from URL --to URL [ID …]`: runs, checkpoints and threads move to another store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from surefoot.cli import confirmation, output, paint, progress
from surefoot.cli.flaws import DAMAGED, many
from surefoot.cli.options import Settings, operator
from surefoot.errors import NotFound, UsageError
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.engine.process.runtime import Runtime
    from surefoot.engine.upkeep.moving import Mover, Outcome

SOME_STAY = 1
_MOST_LISTED = 50


@click.command()
@click.argument("run_ids", metavar="[ID]...", nargs=-1)
@click.option("--from", "source", metavar="URL", required=True, help="The store that they are in.")
@click.option(
    "--to", "target", metavar="URL", required=True, help="The store that they move to. Made, if it is missing."
)
@click.option("--checkpoint", "checkpoints", metavar="NAME", multiple=True, help="A checkpoint to move.")
@click.option("--thread", "threads", metavar="THREAD", multiple=True, help="A thread of an adapter to move.")
@click.option(
    "--back", is_flag=True, help="Give up a move that did not end: what has not arrived goes on where it was."
)
@click.option("--yes", is_flag=True, help="Do it. Without this it asks, or only says what it would do.")
@operator
def copy(
    settings: Settings, run_ids: tuple[str, ...], source: str, target: str, checkpoints: tuple[str, ...],
    threads: tuple[str, ...], back: bool, yes: bool, by: str, note: str,
) -> int:  # fmt: skip
    """Move runs, checkpoints and threads to another store, of any kind: all, or those that are named.

    Each is verified, copied, read back and compared. The source keeps a word that names where it went: whoever asks for
    it there is told. Parents, their children, and threads with the runs of their tasks move together. What is driven
    now, or is damaged, stays. Killed at any point, the same command goes on. Exit code: 0 all moved, 1 some stay, 4 damage.
    """
    from surefoot.engine.process import config
    from surefoot.engine.upkeep.moving import Mover
    from surefoot.store.open import backend_of

    if not backend_of(target).durable:
        raise UsageError(f"{target} is not durable: what moves there is gone when this command ends.")
    here = config.runtime(source, create=False)
    mover = Mover(here, _there(target), by=by, note=note)
    groups = mover.groups(_wanted(here, run_ids, checkpoints, threads))
    if not yes:
        found = _shown(settings, mover, groups, back=back)
        _tell(settings, found, source, target, done=False)
        if confirmation.nobody_to_ask(yes=yes):
            return _code(found)
        confirmation.ask("give the move up?" if back else "move them?", yes=False)
    mover = Mover(here, config.runtime(target, create=True), by=by, note=note)
    with progress.bar(settings) as bar:
        act = mover.call_back if back else mover.move
        found = list(act(groups, lambda done, of: bar("moving", done, of)))
    _tell(settings, found, source, target, done=True)
    return _code(found)


def _there(target: str) -> Runtime:
    """The target to compare with. One that does not exist yet is empty."""
    from surefoot.engine.process import config
    from surefoot.engine.process.runtime import Runtime
    from surefoot.store.open import open_store

    try:
        return config.runtime(target, create=False)
    except NotFound:
        return Runtime(open_store("memory:an empty target", create=True))


def _wanted(here: Runtime, runs: Sequence[str], checkpoints: Sequence[str], threads: Sequence[str]) -> list[str]:
    """The journals that were named; each has to be there."""
    from surefoot.engine.drive.outcome import not_found
    from surefoot.engine.upkeep.verification import called
    from surefoot.store.generation_journal import journal_of
    from surefoot.store.threads import PREFIX as THREAD

    others = [*(journal_of(name) for name in checkpoints), *(THREAD + name for name in threads)]
    for run in runs:
        if here.store.read(run, 0, 1).head is None:
            raise not_found(run, here.store.url)
    for name in others:
        if here.store.read(name, 0, 1).head is None:
            raise NotFound(f"there is no {called(name)} in {here.store.url}.")
    return [*runs, *others]


def _shown(settings: Settings, mover: Mover, groups: list[list[str]], *, back: bool) -> list[Outcome]:
    """What would become of each; of moves that are to be given up, only those that have begun."""
    with progress.bar(settings) as bar:
        found = list(mover.preview(groups, lambda done, of: bar("looking", done, of)))
    return [one for one in found if not back or getattr(one, "began", False)]


def _tell(settings: Settings, found: Sequence[Outcome], source: str, target: str, *, done: bool) -> None:
    from surefoot.engine.upkeep.moving import Gone, Moved, Stays
    from surefoot.engine.upkeep.verification import called
    from surefoot.store.open import shown

    going = [one for one in found if isinstance(one, Moved)]
    staying = [one for one in found if isinstance(one, Stays)]
    gone = [one for one in found if isinstance(one, Gone)]
    if settings.json:
        output.say_json(facts.moves(going, staying, gone, shown(source), shown(target), done=done))
        return
    rows = [(one.status, text.visible(called(one.name)), f"{one.entries:,}") for one in going[:_MOST_LISTED]]
    if rows and not done:
        paint.draw(("STATUS", "WHAT", "ENTRIES"), rows, flexible=())
        if len(going) > len(rows):
            output.say(f"… and {many(len(going) - len(rows), 'other')}")
    for one in staying:
        output.tell(
            text.visible(f"stays: {one.why if called(one.name) in one.why else f'{called(one.name)}: {one.why}'}")
        )
    what = f"{many(len(going), 'journal')} with {many(sum(one.entries for one in going), 'entry')}"
    what += f"; {len(gone):,} had moved before" if gone else ""
    output.say(
        f"{what}: moved to {shown(target)}." if done else f"{what} would move. Nothing was changed; --yes does it."
    )


def _code(found: Sequence[Outcome]) -> int:
    from surefoot.engine.upkeep.moving import Stays

    stay = [one for one in found if isinstance(one, Stays)]
    return DAMAGED if any(one.damaged for one in stay) else SOME_STAY if stay else 0
