"""`surefoot runs tail ID`: the journal as it grows."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import acting, output, paint
from surefoot.cli.options import Settings, common
from surefoot.view import timeline

if TYPE_CHECKING:
    from surefoot.engine.handle import JournalEntry, Run

ENDS = frozenset({"RunDone", "RunFailed", "RunCancelled"})
PAUSE_SECONDS = 0.2
SHARE = 5
"""Reading takes at most one part in so many of the time: a long journal is read less often."""


@click.command()
@click.argument("run_id", metavar="ID")
@click.option(
    "--follow/--no-follow", default=True, help="Go on until the run ends (the default), or show what there is."
)
@click.option("-n", "--last", type=click.IntRange(0), metavar="N", help="Begin with the last N entries. Default: all.")
@common
@click.pass_obj
def tail(settings: Settings, run_id: str, follow: bool, last: int | None) -> None:
    """Show the journal of a run, entry by entry, until the run ends. Ctrl-C ends the looking, not the run."""
    run = acting.open_run(settings, run_id)
    entries = run.entries()
    shown = entries if last is None else entries[max(len(entries) - last, 0) :]
    show = _as_json if settings.json else _printer()
    for entry in shown:
        show(entry)
    if follow and not any(entry.kind in ENDS for entry in entries):
        _follow(run, entries[-1].seq, show)


def _follow(run: Run, seq: int, show: Any) -> None:
    """Every look verifies the whole journal again, so it is looked at only when the store has changed."""
    pause, nap = threading.Event(), PAUSE_SECONDS
    before = -1
    store = run.runtime.store
    while True:
        changes = store.changes()
        if changes != before:
            before, started = changes, time.monotonic()
            for entry in run.entries():
                if entry.seq > seq:
                    seq = entry.seq
                    show(entry)
                    if entry.kind in ENDS:
                        return
            nap = max(PAUSE_SECONDS, SHARE * (time.monotonic() - started))
        pause.wait(nap)


def _as_json(entry: JournalEntry) -> None:
    facts = {"seq": entry.seq, "at": entry.at, "epoch": entry.epoch, "kind": entry.kind, "data": entry.data}
    output.say_json(facts, indent=None)


def _printer() -> Any:
    from rich.text import Text

    console = paint.console()

    def show(entry: JournalEntry) -> None:
        line = timeline.line(entry)
        console.print(
            Text.assemble(
                (f"{line.at}  ", "dim"),
                (f"{line.what:<16} ", "bold red" if line.loud else "cyan"),
                (f"{line.address:<18} " if line.address else "", "bold"),
                line.detail,
            ),
            soft_wrap=True,
        )

    return show
