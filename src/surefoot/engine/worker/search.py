"""The search for work of embedded workers: asks the store which runs can go on, and hands them to the driver.

What the store says (`reserve`) is a hint that costs nothing if it is wrong: the claim is a compare-and-append, so two
workers never drive one run. No process tells a search to begin: the store announces what becomes ready (`listen`), and the
search also looks by itself now and then.
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
"""The net below notifications: how often a worker looks by itself."""
SHORTEST_POLL_SECONDS: Final = 0.005
FIRST_BACK_OFF_SECONDS, LONGEST_BACK_OFF_SECONDS = 0.25, 10.0
SWEEP_SECONDS: Final = 600.0
"""How often lines of the index that are missing or damaged are looked for: their runs would never be woken."""
LOOKED_AT: Final = 1000
"""So many runs, the newest and those that are queued, may show that a queue is in use."""


class Search:
    """Hands to the driver what its share of the store's runs can go on, until it is stopped."""

    def __init__(self, driver: Driver, share: Share) -> None:
        self._driver, self._share = driver, share
        self._said: tuple[Runtime, Serving] | None = None
        """What this worker has announced about itself, and where."""
        self._again: list[str] = []
        """Runs that stand still because of their code: what they met there may be fixed in the code at hand."""
        self._stopping = threading.Event()
        self._swept = 0.0
        self._more = True
        """More runs may be ready than there was room for at the last look."""

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
        """The store may go away and come back. What a worker had claimed meanwhile it still drives, or takes up again."""
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
        """A queue whose name was mistyped is served for ever, without a word."""
        if unknown := set(self._share.queues) - queues.declared() - {""}:
            looks = (RunQuery(status=status, limit=LOOKED_AT) for status in (None, QUEUED))
            listed = (one.row for look in looks for one in self._driver.runtime.store.runs(look))
            for name in sorted(unknown - {row.queue for row in listed if row is not None}):
                log.warning(
                    "worker: no run is in queue %r, nor is it declared: if it is no mistake, declare sf.Queue(%r). "
                    "Declared are: %s.", name, name, ", ".join(sorted(queues.declared())) or "none",
                )  # fmt: skip

    def _announce(self) -> None:
        """Say what this worker serves, and with which code; again whenever that has changed."""
        runtime = self._driver.runtime
        serving = Serving(tuple(sorted(self._driver.names())), self._share.queues, code.digest())
        if self._said != (runtime, serving):
            runtime.store.serve(serving)
            self._said = runtime, serving

    def _find_stopped(self) -> None:
        """Runs that were stopped for their code are tried once by every worker that starts: a fixed deploy goes on."""
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
        """A run that ended may have made room for others; one that did not may be ready again."""
        if self._more or drive.result().how not in OVER:
            with contextlib.suppress(StoreUnavailable):
                self._driver.runtime.store.nudge()
