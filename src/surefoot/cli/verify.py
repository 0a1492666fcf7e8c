"""`surefoot verify [ID]`: is everything whole? Reads all of it, changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from surefoot.cli import flaws, operators, output, progress
from surefoot.cli.flaws import many
from surefoot.cli.options import Settings, verb
from surefoot.view import facts

if TYPE_CHECKING:
    from surefoot.engine.upkeep.verification import VerifyResult


@click.command()
@click.argument("run_id", metavar="[ID]", required=False)
@verb
def verify(settings: Settings, run_id: str | None) -> int:
    """Check every seal, every part, every head and the anchor of the store, or of one run. Changes nothing.

    One line for each run that is damaged: which entry, why, and what is safe. Exit code: 0 whole, 4 damaged.
    """
    from surefoot.engine.declare.plan import check_id
    from surefoot.engine.drive.outcome import not_found
    from surefoot.engine.process import config
    from surefoot.engine.upkeep.verification import verify_store

    store = config.runtime(settings.store, create=False).store
    if run_id is not None:
        check_id(run_id)
        if run_id not in store.names():
            raise not_found(run_id, store.url)
    started = time.perf_counter()
    with progress.journals(settings, "verifying") as watch:
        verdict = verify_store(store, None if run_id is None else [run_id], watch=watch)
    seconds = time.perf_counter() - started
    where = operators.where(settings)
    output.answer(settings, facts.verdict(verdict, where), *lines(verdict, where))
    if not settings.json:
        output.tell(f"{verdict.bytes / 1e6 / max(seconds, 1e-9):,.0f} MB/s, {seconds:.2f} s")
    return flaws.DAMAGED if verdict.flaws else 0


def lines(verdict: VerifyResult, store: str = "") -> Iterator[str]:
    for flaw in verdict.flaws:
        yield flaws.told(flaw, store)
    others = verdict.journals - verdict.runs
    totals = [many(verdict.runs, "run")]
    totals += [many(others, "other journal")] * bool(others)
    totals += [many(verdict.entries, "entry"), many(verdict.parts, "part"), f"{verdict.bytes / 1e6:,.1f} MB"]
    totals += [f"{many(verdict.quarantined, 'entry')} in quarantine"] * bool(verdict.quarantined)
    totals += [f"{many(verdict.unneeded, 'part')} that nobody needs"] * bool(verdict.unneeded)
    yield f"{'whole' if not verdict.flaws else f'{len(verdict.flaws)} damaged'}: {', '.join(totals)}"
