"""Waiting for work: woken by the server, by a nudge from this process, or by the clock.

Polling is the fallback: announcements may never arrive (a pooler in between), a connection may be lost, and the death of
a worker is never announced. So no wait is longer than a second, even if a longer one is asked for.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from surefoot.store.failure import Lost, Rejected

LONGEST_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 5.0


class Subscription(Protocol):
    """A connection on which the server announces that something may be ready."""

    def wait_for_notice(self, seconds: float, *also: int) -> bool:
        """Return when something is announced, a descriptor is readable, or the time is over. May be `Lost`."""

    def close(self) -> None: ...


class Listener:
    def __init__(self, subscribe: Callable[[], Subscription]) -> None:
        """`subscribe` may raise `Lost` or `Rejected`: then only the clock ends a wait, for a while."""
        self._subscribe = subscribe
        self._connection: Subscription | None = None
        self._not_before = 0.0
        self._nudged, self._nudging = -1, -1
        self._lock = threading.Lock()
        self._using = threading.Lock()
        self._over = False

    def wait(self, seconds: float) -> None:
        """For one thread at a time; another thread only waits for the clock."""
        seconds = max(0.0, min(seconds, LONGEST_SECONDS))
        self._prepare()
        if not self._using.acquire(timeout=seconds):
            return
        try:
            self._wait(seconds)
        finally:
            self._using.release()

    def nudge(self) -> None:
        self._prepare()
        with self._lock, suppress(BlockingIOError, OSError):
            if not self._over:
                os.write(self._nudging, b"!")

    def close(self) -> None:
        self._over = True
        with self._lock, suppress(OSError):
            if self._nudging >= 0:
                os.write(self._nudging, b"!")
        with self._using, self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            for descriptor in (self._nudged, self._nudging):
                if descriptor >= 0:
                    os.close(descriptor)
            self._nudged = self._nudging = -1

    def _prepare(self) -> None:
        with self._lock:
            if self._nudged < 0 and not self._over:
                self._nudged, self._nudging = os.pipe()
                os.set_blocking(self._nudged, False)
                os.set_blocking(self._nudging, False)

    def _wait(self, seconds: float) -> None:
        if self._over or (self._connection is None and self._connect()):
            return  # earlier announcements did not reach us
        try:
            if self._connection is None:
                readable(seconds, self._nudged)
            else:
                self._connection.wait_for_notice(seconds, self._nudged)
        except Lost:
            self._connection = None
        with suppress(BlockingIOError):
            os.read(self._nudged, 4096)

    def _connect(self) -> bool:
        if time.monotonic() < self._not_before:
            return False
        self._not_before = time.monotonic() + _AGAIN_SECONDS
        with suppress(Lost, Rejected):
            self._connection = self._subscribe()
        return self._connection is not None


def readable(seconds: float, *descriptors: int) -> bool:
    """Wait until one of them is readable. (`select.select` fails in a process that has many files open.)"""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
