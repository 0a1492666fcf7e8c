"""`surefoot verify [ID]`: is everything whole? Reads all of it, changes nothing."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import output
from surefoot.cli.options import Settings, common
from surefoot.errors import Damaged
from surefoot.view import text

if TYPE_CHECKING:
    from surefoot.engine.verifying import Flaw, Progress, Verdict

DAMAGED = Damaged.exit_code


@click.command()
@click.argument("run_id", metavar="[ID]", required=False)
@common
@click.pass_obj
def verify(settings: Settings, run_id: str | None) -> int:
    """Check every seal, every part, every head and the anchor of the store, or of one run. Changes nothing.

    One line for each run that is damaged: which entry, why, and what is safe. Exit code: 0 whole, 4 damaged.
    """
    from surefoot.engine import config, start
    from surefoot.engine.verifying import verify_store

    store = config.runtime(settings.store, create=False).store
    if run_id is not None:
        start.check_id(run_id)
        if run_id not in store.names():
            raise start.not_found(run_id, store.url)
    started = time.perf_counter()
    with progress(settings) as watch:
        verdict = verify_store(store, None if run_id is None else [run_id], watch=watch)
    seconds = time.perf_counter() - started
    if settings.json:
        output.say_json(facts(verdict))
    else:
        for line in lines(verdict, where(settings)):
            output.say(line)
        output.tell(f"{verdict.bytes / 1e6 / max(seconds, 1e-9):,.0f} MB/s, {seconds:.2f} s")
    return DAMAGED if verdict.flaws else 0


def where(settings: Settings) -> str:
    from surefoot.cli.acting import where as acting_where

    return acting_where(settings)


def lines(verdict: Verdict, place: str = "") -> Iterator[str]:
    for flaw in verdict.flaws:
        yield told(flaw, place)
    others = verdict.journals - verdict.runs
    totals = [many(verdict.runs, "run")]
    totals += [many(others, "other journal")] * bool(others)
    totals += [many(verdict.entries, "entry"), many(verdict.parts, "part"), f"{verdict.bytes / 1e6:,.1f} MB"]
    totals += [f"{many(verdict.quarantined, 'entry')} in quarantine"] * bool(verdict.quarantined)
    totals += [f"{many(verdict.unneeded, 'part')} that nobody needs"] * bool(verdict.unneeded)
    yield f"{'whole' if not verdict.flaws else f'{len(verdict.flaws)} damaged'}: {', '.join(totals)}"


def many(count: int, what: str) -> str:
    if count != 1:
        what = what.removesuffix("y") + "ies" if what.endswith("y") else what + "s"
    return f"{count:,} {what}"


def told(flaw: Flaw, place: str = "") -> str:
    """One line, with what to do now."""
    cures = "; ".join(f"{when}: {_placed(do, place)}" for when, do in flaw.cures)
    return text.visible(f"damaged: {flaw}" + (f" [{cures}]" if cures else ""))


def _placed(command: str, place: str) -> str:
    return command + place if command.startswith(("surefoot repair", "surefoot verify")) else command


def facts(verdict: Verdict) -> dict[str, Any]:
    return {
        "whole": not verdict.flaws,
        "runs": verdict.runs,
        "journals": verdict.journals,
        "entries": verdict.entries,
        "bytes": verdict.bytes,
        "parts": verdict.parts,
        "unneeded_parts": verdict.unneeded,
        "quarantined": verdict.quarantined,
        "damaged": [flaw_facts(flaw) for flaw in verdict.flaws],
    }


def flaw_facts(flaw: Flaw) -> dict[str, Any]:
    return {
        "journal": flaw.journal,
        "entry": flaw.entry or None,
        "entries": flaw.entries if flaw.entries >= 0 else None,
        "valid": flaw.valid,
        "why": flaw.why,
        "message": str(flaw),
        "cures": [{"when": when, "do": do} for when, do in flaw.cures],
    }


@contextlib.contextmanager
def progress(settings: Settings, doing: str = "verifying") -> Iterator[Callable[[Progress], object] | None]:
    """A bar, where standard error is a terminal."""
    if settings.json or not sys.stderr.isatty():
        yield None
        return
    from surefoot.cli import progress as bars

    bar = bars._new_bar()
    (task,) = bar.task_ids

    def show(now: Progress) -> None:
        told = f"{doing}  {now.journals} of {now.of} journals, {now.bytes / 1e6:,.0f} MB"
        bar.update(task, description=told, total=now.of, completed=now.journals)

    try:
        yield show
    finally:
        bar.stop()
