"""Progress of `sf.map`: how many of its items have ended, for people who look at the run.

It costs no write of its own: the notes are lazy, are written with the next entry, and a newer note replaces one that
was not written yet. A map makes at most TICKS notes, however long it is. The notes are for people: no call is recorded
by them, nothing replays them, and a process that only replays makes none. One map is shown at a time, the outermost.
"""

from __future__ import annotations

import threading
from typing import Final

from surefoot.core.entry import ITEMS_DONE, Progressed
from surefoot.engine.declare.context import Context

TICKS: Final = 20
NOTE: Final = "items of sf.map"


class Tally:
    """Counts the branches of one map that have ended."""

    def __init__(self, session: Context, total: int) -> None:
        self._session = session
        self._total = total
        self._done = 0
        self._step = -(-total // TICKS) or 1
        self._lock = threading.Lock()
        self._told = session.notices.told_map is None
        if self._told:
            session.notices.told_map = self
            self._note()

    def ended(self, error: BaseException | None) -> None:
        """A branch has ended. A branch that was stopped or cut off has not ended."""
        if error is not None and not isinstance(error, Exception):
            return
        with self._lock:
            self._done += 1
            if self._told and (self._done % self._step == 0 or self._done == self._total):
                self._note()

    def close(self) -> None:
        """The next map may be shown."""
        if self._told:
            self._session.notices.told_map = None

    def _note(self) -> None:
        if self._session.notices.is_live() and not self._session.dry:
            self._session.record(Progressed(ITEMS_DONE, float(self._done), float(self._total), NOTE))
