"""Waiting for work: woken by NOTIFY, by a nudge from this process, or by the clock.

Polling is the net: behind a pooler notifications may never come, a connection may be lost, and nobody announces that a
worker died. So no wait is longer than a second, whatever was asked for.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from surefoot.store.postgres.connection import Connection, Lost, Rejected, readable

LONGEST_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 5.0
_LISTEN: Final = b"LISTEN surefoot_ready"
_SILENCE: Final = 2.0


class Listening:
    def __init__(self, open_: Callable[[], Connection]) -> None:
        self._open = open_
        self._connection: Connection | None = None
        self._not_before = 0.0
        self._nudged, self._nudging = -1, -1
        self._lock = threading.Lock()
        self._using = threading.Lock()
        self._over = False

    def wait(self, seconds: float) -> None:
        """One thread at a time; another one only waits for the clock."""
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
            return  # what became ready before we listened was announced to nobody
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
        with suppress(Lost):
            connection = self._open()
            try:
                connection.ask(_LISTEN, (), (), silence=_SILENCE)
            except Rejected:
                connection.close()
            else:
                self._connection = connection
        return self._connection is not None
