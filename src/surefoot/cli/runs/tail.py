"""`surefoot runs tail ID`: the journal as it grows."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import operators, output, paint
from surefoot.cli.options import Settings, told_app_option, verb
from surefoot.console import reads
from surefoot.core.state import ENDED
from surefoot.view import facts, text, timeline

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import JournalEntry, Run

ENDS = frozenset({"RunDone", "RunFailed", "RunCancelled"})
PAUSE_SECONDS = 0.2
SHARE = 5
"""Reading takes at most one part in this many of the time: a long journal is read less often."""


@click.command()
@click.argument("run_id", metavar="ID")
@click.option(
    "--follow/--no-follow",
    default=None,
    help="Go on until the run has ended, or only show what there is. Default: go on while a living process drives it.",
)
@click.option("-n", "--last", type=click.IntRange(0), metavar="N", help="Begin with the last N entries. Default: all.")
@told_app_option
@verb
def tail(settings: Settings, run_id: str, follow: bool | None, last: int | None, app: str | None) -> None:
    """Show the journal of a run, entry by entry, while somebody drives it. Ctrl-C ends the looking, not the run.

    Where nobody does, because it stopped, waits, or its process is gone, that is said on standard error, with exit code
    0; --follow waits for whoever takes it up, until the run has ended.
    """
    run = operators.open_run(settings, run_id)
    is_over = run.state().status in ENDED  # Before reading: entries written until then are read below.
    entries = run.entries()
    shown = entries if last is None else entries[max(len(entries) - last, 0) :]
    show = _as_json if settings.json else _printer()
    for entry in shown:
        show(entry)
    if follow is False or is_over:
        return
    if _follow(run, entries[-1].seq, show, wait=bool(follow)):
        return
    seen = operators.page_of(settings, run, app)
    output.tell(text.visible(f"run {run_id}: {seen.headline}. Nobody drives it; wait for more with --follow."))


def _follow(run: Run, seq: int, show: Any, *, wait: bool) -> bool:
    """Whether the run has ended; else no process drives it, and the command does not wait for one.

    Every read verifies the whole journal again, so it is read only when the store has changed.
    """
    from surefoot.engine.drive import claimant

    pause, nap = threading.Event(), PAUSE_SECONDS
    before = -1
    store = run.runtime.store
    state, driven = reads.look(run)
    while True:
        changes, started = store.changes(), time.monotonic()
        if changes != before:
            before = changes
            state, driven = reads.look(run)  # Before reading: entries written until its release are read below.
            for entry in run.entries():
                if entry.seq > seq:
                    seq = entry.seq
                    show(entry)
                    if entry.kind in ENDS:
                        return True
            nap = max(PAUSE_SECONDS, SHARE * (time.monotonic() - started))
        elif driven and not claimant.is_driven(run.runtime, state):
            before = -1
            continue
        if not (driven or wait):
            return False
        pause.wait(nap)


def _as_json(entry: JournalEntry) -> None:
    output.say_json(facts.entry(entry), indent=None)


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
