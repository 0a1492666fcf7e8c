"""The event loop that all async runs of a driver share, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

T = TypeVar("T")
log = logging.getLogger("surefoot")


class SharedLoop:
    """Starts with the first coroutine: blocking programs never load asyncio."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        import asyncio

        return asyncio.run_coroutine_threadsafe(coroutine, self._running())

    def close(self) -> None:
        """Close the loop, when it has no tasks left."""
        if self._loop is not None and self._thread is not None:
            self._over.set()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop = self._thread = None

    def _running(self) -> asyncio.AbstractEventLoop:
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # Blocking steps that async code gives to threads share these threads, and nothing of ours depends on
                # them.
                pool = ThreadPoolExecutor(self._threads, thread_name_prefix="surefoot-steps")
                self._loop.set_default_executor(pool)
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="surefoot-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._over.is_set():
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                # asyncio passes these on from any task to the loop, besides ending the task. The other runs are not
                # concerned.
                log.warning("worker: a task of a workflow ended with %s; the worker goes on", type(error).__name__)
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
