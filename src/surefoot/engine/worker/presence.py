"""A worker's place in the store, with any engine: what it serves and says so, and what it looks after beside its runs."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Final

from surefoot.core.state import QUEUED, STOPPED
from surefoot.engine.declare import code
from surefoot.engine.drive import deploys, fallback
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.worker import queues
from surefoot.engine.worker.driver import Driver
from surefoot.engine.worker.protocol import Share
from surefoot.errors import StoreUnavailable
from surefoot.store.contract import HELD_SECONDS, IndexRow, RunQuery, Serving, Wanted
from surefoot.store.rules import serves

log = logging.getLogger("surefoot")
FIRST_BACK_OFF_SECONDS, LONGEST_BACK_OFF_SECONDS = 0.25, 10.0
ROWS_SECONDS: Final = 600.0
"""How often to search for missing or damaged rows of the index: their runs would never be woken."""
LOOKED_AT: Final = 1000
"""How many runs, the newest and the queued ones, are read to find out whether a queue is in use."""


class Presence:
    def __init__(self, driver: Driver, share: Share) -> None:
        self._driver, self._share = driver, share
        self._said: tuple[Runtime, Serving] | None = None
        """The last announcement of this worker about itself, and the store that got it."""
        self._rows_seen = 0.0

    def survive(self, work: Callable[[], None], over: threading.Event) -> None:
        """The store may go away and come back. A worker still drives its claimed runs, or takes them up again."""
        delay = FIRST_BACK_OFF_SECONDS
        while not over.is_set():
            try:
                self._driver.reopen()
                work()
            except StoreUnavailable as error:
                log.warning("worker: the store is not available, trying again in %.1f s: %s", delay, error)
                over.wait(delay * (0.5 + random.random()))  # noqa: S311 - so that not all come at once
                delay = min(delay * 2, LONGEST_BACK_OFF_SECONDS)
            else:
                return

    def announce(self) -> None:
        """Announce what this worker serves, and with which code; again after each change."""
        runtime = self._driver.runtime
        serving = Serving(tuple(sorted(self._driver.names())), self._share.queues, code.digest())
        if self._said != (runtime, serving):
            runtime.store.serve(serving)
            self._said = runtime, serving

    def leave(self) -> None:
        with contextlib.suppress(StoreUnavailable):
            self._driver.runtime.store.serve(None)

    def doubt_queues(self) -> None:
        """Warn of a queue without runs: a mistyped name would be served silently for ever."""
        if unknown := set(self._share.queues) - queues.declared() - {""}:
            looks = (RunQuery(status=status, limit=LOOKED_AT) for status in (None, QUEUED))
            listed = (one.row for look in looks for one in self._driver.runtime.store.runs(look))
            for name in sorted(unknown - {row.queue for row in listed if row is not None}):
                log.warning(
                    "worker: no run is in queue %r, nor is it declared: if it is no mistake, declare sf.Queue(%r). "
                    "Declared are: %s.", name, name, ", ".join(sorted(queues.declared())) or "none",
                )  # fmt: skip

    def stopped_for_code(self) -> list[IndexRow]:
        """Each new worker tries runs that were stopped for their code once: after a fixed deploy they go on."""
        query = RunQuery(status=STOPPED, limit=LOOKED_AT)
        rows = (one.row for one in self._driver.runtime.store.runs(query) if one.row is not None)
        wanted = self.wanted(1)
        return [row for row in rows if row.reason in deploys.CODE_STOPS and serves(wanted, row.workflow, row.queue)]

    def wanted(self, room: int, *, ready_before: int | None = None, seconds: float = HELD_SECONDS) -> Wanted:
        """The runs that it could drive."""
        runtime = self._driver.runtime
        return Wanted(
            runtime.store.worker, self._driver.names(), room, runtime.clock.now(), self._share.queues, self._driven(),
            queues.limits() if ready_before is None else (), seconds, ready_before=ready_before,
        )  # fmt: skip

    def renew_rows(self) -> None:
        """Lost rows of the index are written again, from time to time."""
        if self._rows_seen and time.monotonic() - self._rows_seen < ROWS_SECONDS:
            return
        store = self._driver.runtime.store
        fallback.renew_rows(store, store.lost_rows())
        self._rows_seen = time.monotonic()

    def _driven(self) -> tuple[str, ...]:
        """Everything this process drives, this worker's or not."""
        return tuple({*self._driver.busy, *(session.run for session in self._driver.runtime.driven())})
