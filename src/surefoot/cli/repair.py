"""`surefoot repair ID`: let a damaged run go on from its longest valid prefix."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from surefoot.cli import confirmation, operators, output
from surefoot.cli.options import Settings, operator
from surefoot.errors import JournalCorrupt, NotFound
from surefoot.view import facts, outlook, text

if TYPE_CHECKING:
    from surefoot.engine.drive.fallback import Damage
    from surefoot.engine.process.runtime import Runtime


@click.command()
@click.argument("run_id", metavar="ID")
@click.option("--give-up", is_flag=True, help="Nothing of it is valid: end it, on record. What is left is kept.")
@click.option("--accept-loss", is_flag=True, help="Go on even if other runs may have vanished with the damaged pages.")
@confirmation.yes_option
@operator
def repair(settings: Settings, run_id: str, give_up: bool, accept_loss: bool, yes: bool, by: str, note: str) -> None:
    """Set aside what is damaged of a run and let it go on before that. Lists what is lost, and asks first.

    What is set aside is kept for inspection. Effects that were recorded there are in doubt, unless an intact entry
    proves what came of them. If the database itself is damaged, it is built anew from all that can be read, and the
    damaged files are kept beside it.
    """
    from surefoot.engine.drive import fallback

    runtime = _sound_store(settings, run_id, yes=yes, accept_loss=accept_loss)
    if give_up:
        _give_up(settings, runtime, run_id, yes=yes, by=by, note=note)
        return
    damage = fallback.diagnose(runtime.store, run_id)
    if damage is None:
        fallback.renew_row(runtime.store, run_id)
        operators.open_run(settings, run_id)  # NotFound, if the run does not exist
    else:
        output.tell(*outlook.told(outlook.of_repair(damage)))
        confirmation.ask("go on before the damage?", yes=yes)
        damage = fallback.fall_back(runtime.store, runtime.clock, run_id, seen=damage, by=by, note=note)
    _tell(settings, run_id, damage)


def _give_up(settings: Settings, runtime: Runtime, run_id: str, *, yes: bool, by: str, note: str) -> None:
    from surefoot.engine.drive import fallback

    output.tell(*outlook.told(outlook.of_giving_up(run_id)))
    confirmation.ask("give it up?", yes=yes)
    fallback.give_up(runtime.store, runtime.clock, run_id, by=by, note=note)
    output.answer(settings, facts.giving_up(run_id), f"given up: run {run_id}.")


def _sound_store(settings: Settings, run_id: str, *, yes: bool, accept_loss: bool) -> Runtime:
    """The store, rebuilt if its pages are damaged."""
    from surefoot.engine.drive import fallback
    from surefoot.engine.process import config
    from surefoot.store.open import backend_of, close_all

    try:
        runtime = config.runtime(settings.store, create=False)
        why = _structure(runtime, run_id)
    except JournalCorrupt as error:
        if not error.facts.get("structure"):
            raise
        why = error.summary
    if why:
        output.tell(text.visible(why))
        output.tell("the database has to be built anew from all that can be read; the damaged files are kept.")
        confirmation.ask("build it anew?", yes=yes)
        close_all()
        url = config.store_url(settings.store)
        backend = backend_of(url)
        done = backend.rebuild(backend.file(url), accept_incomplete=accept_loss)
        config.loud(done, kind="rebuilt")
        runtime = config.runtime(settings.store, create=False)
        fallback.renew_rows(runtime.store)
    return runtime


def _structure(runtime: Runtime, run_id: str) -> str:
    """The damage in the pages of the database, including pages of other runs."""
    from surefoot.engine.drive import fallback

    with suppress(NotFound):
        try:
            fallback.diagnose(runtime.store, run_id)
        except JournalCorrupt as error:
            if error.facts.get("structure"):
                return error.summary
    return "; ".join(runtime.store.flaws()[:3])


def _tell(settings: Settings, run_id: str, damage: Damage | None) -> None:
    told = [f"run {run_id} is sound: nothing to repair."]
    if damage is not None:
        told = [f"repaired: run {run_id} goes on after entry {damage.entry.after}."]
        told += [f"go on with: {operators.resume_command(settings, run_id)}"]
    output.answer(settings, facts.repair(run_id, damage), *told)
