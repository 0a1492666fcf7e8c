"""A line on the terminal that says how far a run is. It looks at the journal like anybody else.

Only where standard error is a terminal; it never touches standard output, the run or the exit code.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.core.state import RunState

PAUSE_SECONDS = 0.3
SHARE = 20
"""A look takes at most one part in so many of the time: a long journal is looked at less often."""


@contextlib.contextmanager
def shown(run_id: str, store: str | None, *, wanted: bool) -> Iterator[None]:
    if not (wanted and sys.stderr.isatty()):
        yield
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from surefoot.cli import paint

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        console=paint.console(stderr=True),
        transient=True,
    )
    task = bar.add_task(run_id, total=None)
    ended = threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(run_id, store, ended, lambda state: _update(bar, task, state)), daemon=True
    )
    bar.start()
    bar.console.show_cursor(True)  # Whoever kills us with SIGKILL must not be left without a cursor.
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        bar.stop()
        watcher.join(timeout=5)


def _watch(run_id: str, store: str | None, ended: threading.Event, update: Any) -> None:
    pause = PAUSE_SECONDS
    while not ended.wait(pause):
        started = time.monotonic()
        state = _look(run_id, store)
        if state is not None and not ended.is_set():
            update(state)
        pause = max(PAUSE_SECONDS, SHARE * (time.monotonic() - started))


def _look(run_id: str, store: str | None) -> RunState | None:
    from surefoot.engine.handle import get_run

    try:
        return get_run(run_id, store=store).state()
    except SurefootError:
        return None  # Not created yet, or in trouble: the run itself will say so.


def _update(bar: Any, task: Any, state: RunState) -> None:
    from surefoot.view.page import calls_done, progress_text
    from surefoot.view.text import visible

    told = progress_text(state) or f"{calls_done(state)} calls recorded"
    total = state.progress.total if state.progress is not None else None
    done = state.progress.done if state.progress is not None else 0
    bar.update(task, description=f"{visible(state.run)}  {told}", total=total, completed=done)
