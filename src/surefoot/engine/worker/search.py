"""The search for work of embedded workers: asks the store which runs can go on, and gives them to the driver.

The store's answer (`reserve`) is a hint that costs nothing if it is wrong: the claim is a compare-and-append, so two
workers never drive one run. No process starts a search in another: the store announces ready runs (`listen`), and the
search also checks by itself from time to time.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from surefoot.core.state import QUEUED, STOPPED
from surefoot.core.timer import MICROS
from surefoot.engine.declare import code
from surefoot.engine.drive import deploys, fallback
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.worker import queues
from surefoot.engine.worker.driver import Driver
from surefoot.engine.worker.protocol import Share
from surefoot.engine.worker.stand import OVER, DriveResult
from surefoot.errors import StoreUnavailable
from surefoot.store.contract import Reserved, RunQuery, Serving, Wanted
from surefoot.store.rules import serves

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger("surefoot")
POLL_SECONDS: Final = 1.0
"""The fallback for lost notifications: how often a worker checks by itself."""
SHORTEST_POLL_SECONDS: Final = 0.005
FIRST_BACK_OFF_SECONDS, LONGEST_BACK_OFF_SECONDS = 0.25, 10.0
SWEEP_SECONDS: Final = 600.0
"""How often to search for missing or damaged rows of the index: their runs would never be woken."""
LOOKED_AT: Final = 1000
"""How many runs, the newest and the queued ones, are read to find out whether a queue is in use."""


class Search:
    """Gives the driver those runs of its share that can go on, until it is stopped."""

    def __init__(self, driver: Driver, share: Share) -> None:
        self._driver, self._share = driver, share
        self._said: tuple[Runtime, Serving] | None = None
        """The last announcement of this worker about itself, and the store that got it."""
        self._again: list[str] = []
        """Runs that stopped because of their code: the code at hand may be fixed."""
        self._stopping = threading.Event()
        self._swept = 0.0
        self._more = True
        """More runs may be ready than there was room for at the last search."""

    def run(self) -> None:
        """Search in this thread until `stop` is called; then hand everything back."""
        self._survive(self._announce)
        self._survive(self._doubt_queues)
        self._survive(self._find_stopped)
        try:
            while not self._stopping.is_set():
                self._survive(self._round)
        finally:
            self._stopping.set()
            self._driver.close(self._share.grace_seconds)
            with contextlib.suppress(StoreUnavailable):
                self._driver.runtime.store.serve(None)

    def stop(self) -> None:
        self._stopping.set()
        with contextlib.suppress(StoreUnavailable):
            self._driver.runtime.store.nudge()

    def _survive(self, work: Callable[[], None]) -> None:
        """The store may go away and come back. A worker still drives its claimed runs, or takes them up again."""
        delay = FIRST_BACK_OFF_SECONDS
        while not self._stopping.is_set():
            try:
                self._driver.reopen()
                work()
            except StoreUnavailable as error:
                log.warning("worker: the store is not available, trying again in %.1f s: %s", delay, error)
                self._stopping.wait(delay * (0.5 + random.random()))  # noqa: S311 - so that not all come at once
                delay = min(delay * 2, LONGEST_BACK_OFF_SECONDS)
            else:
                return

    def _doubt_queues(self) -> None:
        """Warn of a queue without runs: a mistyped name would be served silently for ever."""
        if unknown := set(self._share.queues) - queues.declared() - {""}:
            looks = (RunQuery(status=status, limit=LOOKED_AT) for status in (None, QUEUED))
            listed = (one.row for look in looks for one in self._driver.runtime.store.runs(look))
            for name in sorted(unknown - {row.queue for row in listed if row is not None}):
                log.warning(
                    "worker: no run is in queue %r, nor is it declared: if it is no mistake, declare sf.Queue(%r). "
                    "Declared are: %s.", name, name, ", ".join(sorted(queues.declared())) or "none",
                )  # fmt: skip

    def _announce(self) -> None:
        """Announce what this worker serves, and with which code; again after each change."""
        runtime = self._driver.runtime
        serving = Serving(tuple(sorted(self._driver.names())), self._share.queues, code.digest())
        if self._said != (runtime, serving):
            runtime.store.serve(serving)
            self._said = runtime, serving

    def _find_stopped(self) -> None:
        """Each new worker tries runs that were stopped for their code once: after a fixed deploy they go on."""
        query = RunQuery(status=STOPPED, limit=LOOKED_AT)
        rows = (one.row for one in self._driver.runtime.store.runs(query) if one.row is not None)
        stopped = [row for row in rows if row.reason in deploys.CODE_STOPS]
        wanted = self._wanted(1)
        self._again = [row.run for row in stopped if serves(wanted, row.workflow, row.queue)]

    def _round(self) -> None:
        self._sweep()
        self._announce()
        store, room = self._driver.runtime.store, self._share.concurrency - len(self._driver.busy)
        self._more = True
        reserved = store.reserve(self._wanted(room)) if room > 0 else Reserved([])
        self._more = len(reserved.runs) >= room or bool(queues.limits())
        ours = [run for run in reserved.runs if not self._driver.leaves(run)]
        self._take(ours)
        if spare := min(room - len(ours), len(self._again)):
            self._take(self._again[:spare])
            del self._again[:spare]
        if not reserved.runs or len(ours) == room:
            store.listen(self._pause(reserved.next_wake))

    def _wanted(self, room: int) -> Wanted:
        runtime, workflows = self._driver.runtime, self._driver.names()
        now, limits = runtime.clock.now(), queues.limits()
        return Wanted(runtime.store.worker, workflows, room, now, self._share.queues, self._driven(), limits)

    def _driven(self) -> tuple[str, ...]:
        """Everything this process drives, this worker's or not."""
        return tuple({*self._driver.busy, *(session.run for session in self._driver.runtime.driven())})

    def _pause(self, next_wake: int | None) -> float:
        if next_wake is None:
            return POLL_SECONDS
        left = (next_wake - self._driver.runtime.clock.now()) / MICROS
        return max(SHORTEST_POLL_SECONDS, min(POLL_SECONDS, left))

    def _sweep(self) -> None:
        if self._swept and time.monotonic() - self._swept < SWEEP_SECONDS:
            return
        store = self._driver.runtime.store
        fallback.renew_rows(store, store.lost_rows())
        self._swept = time.monotonic()

    def _take(self, runs: Sequence[str]) -> None:
        for drive in self._driver.drive_all(runs):
            drive.add_done_callback(self._look_again)

    def _look_again(self, drive: Future[DriveResult]) -> None:
        """A run that ended may have made room for others; a run that did not end may be ready again."""
        if self._more or drive.result().how not in OVER:
            with contextlib.suppress(StoreUnavailable):
                self._driver.runtime.store.nudge()
