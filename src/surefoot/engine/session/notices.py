"""Messages to people about a run that is driven: each is sent once, and some are kept until the run has ended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial

from surefoot.core.command import Pause
from surefoot.core.cure import Cure
from surefoot.core.entry import Stop
from surefoot.core.masking import Mask
from surefoot.core.timer import remaining
from surefoot.engine.process.clock import Clock
from surefoot.engine.process.config import alert

_log = logging.getLogger("surefoot")


class Notices:
    def __init__(
        self, run: str, store: str, mask: Mask, clock: Clock, is_live: Callable[[], bool],
        earlier_stops: tuple[Stop, ...] = (),
    ) -> None:  # fmt: skip
        self._run = run
        self._store = store
        self._mask = mask
        self._clock = clock
        self.is_live = is_live
        """Whether what happens now is new, and not replayed."""
        self._untold: list[Callable[[], None]] = []
        """Alerts about events that a replay has only passed: the first process may have died before it sent them."""
        self.earlier_stops = earlier_stops
        """The stops on record when this drive began: people know of them."""
        self.told: set[tuple[str, str, str]] = set()
        """Stops that were reported while the run waited for an answer (`questions.identity`)."""
        self.told_map: object | None = None
        """The map whose progress is reported, while it runs (`tally.py`)."""
        self.left_behind: dict[str, bool] = {}
        """Effects that failed in doubt, or that a saga could not undo; and whether this was reported."""

    def tell(self, message: str, cures: Iterable[Cure], *, kind: str) -> None:
        """Alert people: at once, if it has just happened, but not at every replay; else at the end, to be sure."""
        told = partial(alert, message, cures, store=self._store, run=self._run, kind=kind)
        if self.is_live():
            told()
        else:
            self._untold.append(told)

    def tell_the_rest(self) -> None:
        for told in self._untold:
            told()
        self._untold.clear()

    def say_why(self, pause: Pause) -> None:
        """Log why the run waits, if its code did not ask for a wait."""
        left = remaining(pause.due, self._clock.read()) if pause.why else 0.0
        if left > 0:
            _log.warning("run %s: waiting for %.0f s: %s", self._run, left, self._mask(pause.why))
