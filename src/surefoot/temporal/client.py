"""The connection of this process to the cluster: one event loop in one thread, for callers in any thread.

A process that ends closes it first; one that was forked begins with none.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import random
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from surefoot.errors import UsageError
from surefoot.temporal.address import Address

if TYPE_CHECKING:
    from temporalio.client import Client

T = TypeVar("T")
CONNECT_SECONDS: Final = 5.0
FIRST_BACK_OFF_SECONDS, LONGEST_BACK_OFF_SECONDS = 0.5, 10.0
MOST_PENDING: Final = 1000


async def connect(address: Address, **options: Any) -> Client:
    """Keys and certificates are what Temporal's own tools would use."""
    try:
        from temporalio.client import Client
        from temporalio.envconfig import ClientConfig
    except ImportError as error:
        raise UsageError(f"the engine needs `pip install 'surefoot[temporal]'`: {error}") from error
    known: dict[str, Any] = dict(ClientConfig.load_client_connect_config())
    known.update(target_host=address.target, namespace=address.namespace, **options)
    if not known.get("tls"):
        known["tls"] = address.tls
    return await Client.connect(**known)


class Line:
    """Calls of the cluster from any thread."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._forget()
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.close)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._client: Client | None = None
        self._over = False
        self._pending = 0
        """How many calls are made again in the background."""

    def call(self, work: Callable[[Client], Coroutine[Any, Any, T]], seconds: float) -> T:
        """The answer, or TimeoutError, or what the call raised."""
        return asyncio.run_coroutine_threadsafe(self._bounded(work, seconds), self._running()).result(seconds + 1)

    def again(self, work: Callable[[Client], Coroutine[Any, Any, object]], seconds: float) -> None:
        """Call it in the background, again and again until it succeeds, or this process ends."""
        with self._lock:
            if self._pending >= MOST_PENDING:
                return
            self._pending += 1
        asyncio.run_coroutine_threadsafe(self._until_heard(work, seconds), self._running())

    def close(self) -> None:
        """No thread of ours is left when the interpreter ends."""
        with self._lock:
            self._over = True
            loop, thread = self._loop, self._thread
            self._loop = self._thread = self._client = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(CONNECT_SECONDS)

    async def _bounded(self, work: Callable[[Client], Coroutine[Any, Any, T]], seconds: float) -> T:
        async with asyncio.timeout(seconds):
            if self._client is None:
                self._client = await connect(self._address, lazy=True)
            return await work(self._client)

    async def _until_heard(self, work: Callable[[Client], Coroutine[Any, Any, object]], seconds: float) -> None:
        delay = FIRST_BACK_OFF_SECONDS
        try:
            while True:
                await asyncio.sleep(delay * (0.5 + random.random()))  # noqa: S311 - so that not all come at once
                with contextlib.suppress(Exception):
                    await self._bounded(work, seconds)
                    return
                delay = min(delay * 2, LONGEST_BACK_OFF_SECONDS)
        finally:
            self._pending -= 1

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._over:
                raise RuntimeError("this process is ending")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="surefoot-temporal", daemon=True
                )
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(_left_undone(asyncio.all_tasks(loop)))
    loop.close()


async def _left_undone(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
