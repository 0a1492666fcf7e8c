"""Progress for a person at a terminal while something takes long: how far a run is, a bar, or one line.

Only if standard error is a terminal; it never changes standard output, the work, or the exit code. The line
of a run reads the journal like any other reader.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from surefoot.cli.options import Settings
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from rich.progress import Progress

    from surefoot.core.state import RunState
    from surefoot.engine.upkeep import verification

FIRST_LOOK_SECONDS = 1.0
"""Faster work gets no line: it would only flicker."""
PAUSE_SECONDS = 0.3
SHARE = 20
"""Reading takes at most one part in this many of the time: a long journal is read less often."""


@contextlib.contextmanager
def shown(run_id: str, store: str | None, *, wanted: bool) -> Iterator[None]:
    if not (wanted and sys.stderr.isatty()):
        yield
        return
    watcher = _Watcher(run_id, store)
    watcher.start()
    try:
        yield
    finally:
        watcher.end()


class _Watcher(threading.Thread):
    def __init__(self, run_id: str, store: str | None) -> None:
        super().__init__(name="surefoot-progress", daemon=True)
        self._run_id = run_id
        self._store = store
        self._ended = threading.Event()
        self._bar: Progress | None = None

    def run(self) -> None:
        pause = FIRST_LOOK_SECONDS
        while not self._ended.wait(pause):
            started = time.monotonic()
            state = self._look()
            if state is not None:
                self._show(state)
            pause = max(PAUSE_SECONDS, SHARE * (time.monotonic() - started))

    def end(self) -> None:
        self._ended.set()
        self.join()
        if self._bar is not None:
            self._bar.stop()

    def _look(self) -> RunState | None:
        from surefoot.engine.operate.handle import get_run

        try:
            return get_run(self._run_id, store=self._store).state()
        except SurefootError:
            return None  # Not created yet, or in trouble: the run itself will report that.

    def _show(self, state: RunState) -> None:
        from surefoot.core.parking import why_parked
        from surefoot.view.page import calls_done, progress_text
        from surefoot.view.text import visible

        if self._bar is None:
            self._bar = _new_bar()
        told = progress_text(state) or f"{calls_done(state)} calls recorded"
        told += f"  parked: {visible(parked)}" if (parked := why_parked(state)) else ""
        total = state.progress.total if state.progress is not None else None
        done = state.progress.done if state.progress is not None else 0
        (task,) = self._bar.task_ids
        self._bar.update(task, description=f"{visible(state.run)}  {told}", total=total, completed=done)


@contextlib.contextmanager
def bar(settings: Settings, *, wanted: bool = True) -> Iterator[Callable[[str, int, int], None]]:
    """A function that shows progress: the work, how many are done, of how many."""
    if not (wanted and _seen(settings)):
        yield lambda _doing, _done, _of: None
        return
    drawn = _new_bar()
    (task,) = drawn.task_ids
    try:
        yield lambda doing, done, of: drawn.update(task, description=doing, total=of, completed=done)
    finally:
        drawn.stop()


@contextlib.contextmanager
def journals(settings: Settings, doing: str) -> Iterator[Callable[[verification.Progress], None]]:
    """A bar for verbs that read every journal of the store."""
    with bar(settings) as show:
        yield lambda now: show(
            f"{doing}  {now.journals} of {now.of} journals, {now.bytes / 1e6:,.0f} MB", now.journals, now.of
        )


@contextlib.contextmanager
def line(settings: Settings) -> Iterator[Callable[[str], None]]:
    """A function that shows the current step, if the number of steps is unknown."""
    if not _seen(settings):
        yield lambda _: None
        return
    from surefoot.view.text import visible

    started = said = time.monotonic()
    written = False

    def tell(doing: str) -> None:
        nonlocal said, written
        now = time.monotonic()
        if now - started > FIRST_LOOK_SECONDS and now - said > PAUSE_SECONDS:
            said, written = now, True
            sys.stderr.write(f"\r\x1b[K{visible(doing)}")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if written:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _seen(settings: Settings) -> bool:
    """Whether a person is watching, rather than a program that asked for JSON."""
    return not settings.json and sys.stderr.isatty()


def _new_bar() -> Progress:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from surefoot.cli import paint

    drawn = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        console=paint.console(stderr=True),
        transient=True,
        refresh_per_second=5,
    )
    drawn.add_task("", total=None)
    drawn.start()
    drawn.console.show_cursor(True)  # After SIGKILL the terminal would be left without a cursor.
    return drawn
