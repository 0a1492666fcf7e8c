"""A worker on a Temporal cluster: polls the task queues of its share, drives what it gets, and sweeps the store.

The sweep is the net below the bell: an answer given by somebody who knows nothing of Temporal, a process that died
between its entry and its ring, or a cluster that was away cost seconds, and never the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from surefoot.core.timer import MICROS
from surefoot.engine.process import config, journal
from surefoot.engine.worker import queues
from surefoot.engine.worker.driver import Driver
from surefoot.engine.worker.presence import Presence
from surefoot.engine.worker.protocol import Share
from surefoot.errors import SurefootError, UsageError
from surefoot.store.contract import IndexRow
from surefoot.temporal import names

if TYPE_CHECKING:
    from temporalio.client import Client

    from surefoot.temporal.bell import Rung
    from surefoot.temporal.engine import Temporal
    from surefoot.temporal.polls import Polls

T = TypeVar("T")
log = logging.getLogger("surefoot")
FIRST_BACK_OFF_SECONDS, LONGEST_BACK_OFF_SECONDS = 0.25, 10.0
SWEPT_AT_ONCE: Final = 500
MOST_SWEEPS: Final = 10
SPARE_THREADS: Final = 8
"""For requests to the store, beside those of drives."""
TELL_SECONDS: Final = 5.0
"""How often a worker looks whether what it serves is still what it said."""


class TemporalServer:
    """Serves until it is stopped."""

    def __init__(self, engine: Temporal, driver: Driver, share: Share) -> None:
        require_named_store(driver)
        self._engine, self._driver, self._share = engine, driver, share
        self._presence = Presence(driver, share)
        self._over = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def run(self) -> None:
        """Serve in this thread until `stop` is called; then hand everything back."""
        try:
            for work in (self._presence.announce, self._presence.doubt_queues):
                self._presence.survive(work, self._over)
            asyncio.run(self._serve())
        finally:
            self._over.set()
            self._driver.close(self._share.grace_seconds)
            self._presence.leave()

    def stop(self) -> None:
        self._over.set()
        loop, stopping = self._loop, self._stopping
        if loop is not None and stopping is not None and not loop.is_closed():
            loop.call_soon_threadsafe(stopping.set)

    # -- serving ----------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        loop = self._loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(self._share.concurrency + SPARE_THREADS))
        self._stopping = asyncio.Event()
        if self._over.is_set() or (client := await self._connected()) is None:
            return
        from surefoot.temporal.activities import Activities
        from surefoot.temporal.polls import Polls

        activities = Activities(self._engine, self._driver, client, self._share)
        activities.has_attributes = await has_attributes(client)
        cell = self._engine.cell(self._driver.runtime.store.url)
        polls = Polls(client, activities, self._engine.address, cell, self._share.concurrency)
        for queue in self._share.queues or ("", *sorted(queues.declared())):
            polls.add(queue)
        tending = asyncio.create_task(self._tend(client, polls))
        stopped = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([stopped, tending, *polls.tasks], return_when=asyncio.FIRST_COMPLETED)
        activities.leaving = True
        self._over.set()
        ending = [stopped, tending, *polls.tasks]
        for task in ending:
            task.cancel()
        for end in await asyncio.gather(*ending, return_exceptions=True):
            if isinstance(end, Exception):
                raise end

    async def _connected(self) -> Client | None:
        """The cluster may be away when a worker starts, too."""
        from surefoot.temporal.client import connect

        delay = FIRST_BACK_OFF_SECONDS
        while not self._over.is_set():
            try:
                return await connect(self._engine.address, identity=self._identity())
            except RuntimeError as error:
                log.warning(
                    "worker: Temporal at %s is away, trying again in %.1f s: %s",
                    self._engine.address.target,
                    delay,
                    error,
                )
                await self._pause(delay * (0.5 + random.random()))  # noqa: S311 - so that not all come at once
                delay = min(delay * 2, LONGEST_BACK_OFF_SECONDS)
        return None

    async def _pause(self, seconds: float) -> None:
        """Shorter, if the worker is stopped."""
        if self._stopping is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    def _identity(self) -> str:
        return f"surefoot-{self._driver.runtime.store.worker[:8]} (pid {os.getpid()} on {socket.gethostname()})"

    async def _in_thread(self, work: Callable[[], T]) -> T | None:
        """The store is asked in threads, again and again while it is away. None: the worker is stopped."""
        found: list[T] = []
        await asyncio.to_thread(self._presence.survive, lambda: found.append(work()), self._over)
        return found[0] if found else None

    # -- the sweep --------------------------------------------------------------------------------------

    async def _tend(self, client: Client, polls: Polls) -> None:
        """The net below the bell: runs that nobody has taken up for a while, and what this worker says of itself."""
        sweep = self._engine.address.sweep_seconds
        next_sweep = 0.0 if sweep is None else sweep * random.random()  # noqa: S311 - workers are not to sweep at once
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await self._in_thread(self._wake_stopped)
        while True:
            await asyncio.sleep(min(TELL_SECONDS, sweep or TELL_SECONDS))
            await self._in_thread(self._presence.announce)
            await self._in_thread(self._presence.renew_rows)
            if sweep is not None and loop.time() - begun >= next_sweep:
                await self._sweep(client, polls, sweep)
                begun, next_sweep = loop.time(), sweep * (0.75 + random.random() / 2)  # noqa: S311

    async def _sweep(self, client: Client, polls: Polls, seconds: float) -> None:
        from temporalio.service import RPCError

        from surefoot.temporal import bell

        for _ in range(MOST_SWEEPS):
            rungs = await self._in_thread(partial(self._ready_for, seconds)) or []
            for queue, rung in rungs:
                if not self._share.queues:
                    polls.add(queue)
                try:
                    await bell.look_after(client, rung)
                except RPCError as error:
                    log.warning(
                        "worker: the sweep did not reach Temporal at %s: %s", self._engine.address.target, error
                    )
                    return
            if len(rungs) < SWEPT_AT_ONCE:
                return

    def _ready_for(self, seconds: float) -> list[tuple[str, Rung]]:
        """Runs that have been ready for that long, with their queues."""
        runtime = self._driver.runtime
        before = runtime.clock.now() - round(seconds * MICROS)
        wanted = self._presence.wanted(SWEPT_AT_ONCE, ready_before=before, seconds=1.0)
        found = []
        for run in runtime.store.reserve(wanted).runs:
            try:
                loaded = journal.load(runtime.store, run)
            except SurefootError:  # Damaged: its drive deals with that.
                loaded = None
            created = loaded[0].created if loaded is not None else None
            if created is not None:
                found.append(
                    (created.queue, self._engine.rung(run, created.workflow, created.queue, runtime.store.url))
                )
        return found

    def _wake_stopped(self) -> None:
        """After a fixed deploy, runs that were stopped for their code go on."""
        rows: list[IndexRow] = self._presence.stopped_for_code()
        for row in rows:
            self._engine.ring(row, self._driver.runtime.store.url)


def require_named_store(driver: Driver) -> None:
    """Workers on several hosts have to mean the same store, so nothing is guessed here."""
    if not config.is_store_named(driver.store_url):
        raise UsageError(
            "with an engine, name the store: SUREFOOT_STORE=postgresql://…, or sf.configure(store=…). A SQLite file is "
            "right only if all workers are on one host."
        )


async def has_attributes(client: Client) -> bool:
    """Whether the namespace has the search attributes. To set one that is missing would fail every run."""
    from temporalio.service import RPCError

    try:
        return not await missing_attributes(client)
    except RPCError as error:
        log.warning("worker: the search attributes of namespace %s cannot be read: %s", client.namespace, error)
        return False


async def missing_attributes(client: Client) -> list[str]:
    from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest

    found = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    return [name for name in names.ATTRIBUTES if name not in found.custom_attributes]
