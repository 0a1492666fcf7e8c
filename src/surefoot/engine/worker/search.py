"""The search for work of embedded workers: asks the store which runs can go on, and gives them to the driver.

The store's answer (`reserve`) is a hint that costs nothing if it is wrong: the claim is a compare-and-append, so two
workers never drive one run. No process starts a search in another: the store announces ready runs (`listen`), and the
search also checks by itself from time to time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from surefoot.core.timer import MICROS
from surefoot.engine.worker import queues
from surefoot.engine.worker.driver import Driver
from surefoot.engine.worker.presence import Presence
from surefoot.engine.worker.protocol import Share
from surefoot.engine.worker.stand import OVER, DriveResult
from surefoot.errors import StoreUnavailable
from surefoot.store.contract import Reserved

if TYPE_CHECKING:
    from concurrent.futures import Future

POLL_SECONDS: Final = 1.0
"""The fallback for lost notifications: how often a worker checks by itself."""
SHORTEST_POLL_SECONDS: Final = 0.005


class Search:
    """Gives the driver those runs of its share that can go on, until it is stopped."""

    def __init__(self, driver: Driver, share: Share) -> None:
        self._driver, self._share = driver, share
        self._presence = Presence(driver, share)
        self._again: list[str] = []
        """Runs that stopped because of their code: the code at hand may be fixed."""
        self._stopping = threading.Event()
        self._more = True
        """More runs may be ready than there was room for at the last search."""

    def run(self) -> None:
        """Search in this thread until `stop` is called; then hand everything back."""
        self._survive(self._presence.announce)
        self._survive(self._presence.doubt_queues)
        self._survive(self._find_stopped)
        try:
            while not self._stopping.is_set():
                self._survive(self._round)
        finally:
            self._stopping.set()
            self._driver.close(self._share.grace_seconds)
            self._presence.leave()

    def stop(self) -> None:
        self._stopping.set()
        with contextlib.suppress(StoreUnavailable):
            self._driver.runtime.store.nudge()

    def _survive(self, work: Callable[[], None]) -> None:
        self._presence.survive(work, self._stopping)

    def _find_stopped(self) -> None:
        self._again = [row.run for row in self._presence.stopped_for_code()]

    def _round(self) -> None:
        self._presence.renew_rows()
        self._presence.announce()
        store, room = self._driver.runtime.store, self._share.concurrency - len(self._driver.busy)
        self._more = True
        reserved = store.reserve(self._presence.wanted(room)) if room > 0 else Reserved([])
        self._more = len(reserved.runs) >= room or bool(queues.limits())
        ours = [run for run in reserved.runs if not self._driver.leaves(run)]
        self._take(ours)
        if spare := min(room - len(ours), len(self._again)):
            self._take(self._again[:spare])
            del self._again[:spare]
        if not reserved.runs or len(ours) == room:
            store.listen(self._pause(reserved.next_wake))

    def _pause(self, next_wake: int | None) -> float:
        if next_wake is None:
            return POLL_SECONDS
        left = (next_wake - self._driver.runtime.clock.now()) / MICROS
        return max(SHORTEST_POLL_SECONDS, min(POLL_SECONDS, left))

    def _take(self, runs: Sequence[str]) -> None:
        for drive in self._driver.drive_all(runs):
            drive.add_done_callback(self._look_again)

    def _look_again(self, drive: Future[DriveResult]) -> None:
        """A run that ended may have made room for others; a run that did not end may be ready again."""
        if self._more or drive.result().how not in OVER:
            with contextlib.suppress(StoreUnavailable):
                self._driver.runtime.store.nudge()
