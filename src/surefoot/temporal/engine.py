"""The engine whose workers are Temporal's: it drives where and when, and the journal stays the record.

Nothing that a run is promised rests on Temporal: every append names the head that it follows, and the store's lease is
looked at before each effect. A ring that is lost costs the time until the sweep.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from surefoot.store.contract import IndexRow
from surefoot.store.findings import Finding
from surefoot.temporal import cells, names
from surefoot.temporal.address import Address, parsed
from surefoot.temporal.client import Line

if TYPE_CHECKING:
    from temporalio.client import Client

    from surefoot.engine.worker.driver import Driver
    from surefoot.engine.worker.protocol import Engine, Server, Share
    from surefoot.temporal.bell import Rung

log = logging.getLogger("surefoot")
AWAY_SECONDS: Final = 10.0
"""For so long after a ring that was not heard nobody waits for another: it rings in the background."""


class Temporal:
    """Runs are driven by workers of a Temporal cluster as soon as they can go on."""

    drives = True

    def __init__(self, url: str) -> None:
        self.url = url
        self.address: Address = parsed(url)
        self.line = Line(self.address)
        self._quiet = threading.local()
        self._away_until = 0.0

    def ring(self, row: IndexRow, store: str) -> None:
        if row.run in self._muted():
            return
        from surefoot.temporal import bell

        self._call(self.rung(row.run, row.workflow, row.queue, store), bell.ring)

    def reopen(self, row: IndexRow, store: str) -> None:
        """Begin its workflow anew, even if somebody has terminated it."""
        from surefoot.temporal import bell

        self._call(self.rung(row.run, row.workflow, row.queue, store), bell.begin)

    def examine(self) -> list[Finding]:
        from surefoot.temporal import checkup

        return checkup.findings(self)

    def rung(self, run: str, workflow: str, queue: str, store: str) -> Rung:
        from surefoot.temporal.bell import Rung

        cell = self.cell(store)
        return Rung(run, workflow, names.task_queue(queue, cell), self.address.mirror, cell)

    def cell(self, store: str) -> str:
        """The cell of a store, by its URL as shown: one of SUREFOOT_CELLS, or the one of this process."""
        return cells.by_store().get(store, self.address.cell)

    @contextmanager
    def quiet(self, run: str) -> Iterator[None]:
        """What this thread writes into that run is for the drive that it is about to begin."""
        self._muted().add(run)
        try:
            yield
        finally:
            self._muted().discard(run)

    def serve(self, driver: Driver, share: Share) -> Server:
        from surefoot.temporal.server import TemporalServer

        return TemporalServer(self, driver, share)

    def close(self) -> None:
        """The connection of this process is closed."""
        self.line.close()

    def _muted(self) -> set[str]:
        muted: set[str] = self._quiet.__dict__.setdefault("runs", set())
        return muted

    def _call(self, rung: Rung, how: Callable[[Client, Rung], Coroutine[Any, Any, None]]) -> None:
        from surefoot.temporal import bell

        def work(client: Client) -> Coroutine[Any, Any, None]:
            return how(client, rung)

        if time.monotonic() < self._away_until:
            self.line.again(work, bell.RING_SECONDS)
            return
        try:
            self.line.call(work, bell.RING_SECONDS)
        except Exception as error:  # noqa: BLE001 - the entry is recorded, and this process and the sweep go on ringing
            self._away_until = time.monotonic() + AWAY_SECONDS
            log.warning(
                "run %s: Temporal at %s did not hear that it can go on (%r). It is recorded; this process tells it again, "
                "and a worker finds it by itself.", rung.run, self.address.target, error,
            )  # fmt: skip
            self.line.again(work, bell.RING_SECONDS)


def open_engine(url: str) -> Engine:
    return Temporal(url)
