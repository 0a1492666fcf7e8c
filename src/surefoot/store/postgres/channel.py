"""A connection for one purpose, made again when it was lost, for as long as patience lasts.

What was lost on the way may have happened. Whoever writes is told so (`doubtful`) and looks before believing a
conflict: it may be their own commit, whose acknowledgement got lost.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from surefoot.store.postgres.connection import Connection, Decoder, Lost, Rejected, Rows
from surefoot.store.postgres.failure import PASSING, explain, unreachable
from surefoot.store.postgres.wire import Param

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0
_ROUNDS: Final = 20
"""So often a deadlock or the like is tried again."""


class Waits(Struct, frozen=True):
    """How long things may take."""

    connect: int = 5
    """A connection; whole seconds, for libpq takes no others, unless the URL says so itself."""
    silence: float = 10.0
    """An answer, before the connection is given up."""
    slow: float = 300.0
    """The same, for questions that read the whole store."""
    patience: float = 30.0
    """Until a server that went away is back."""
    lease: float = 10.0
    """Until others count a worker as dead."""


class Channel:
    def __init__(self, open_: Callable[[], Connection], where: str, waits: Waits, over: threading.Event) -> None:
        """`open_` answers with a connection that was checked; `over` is set when nobody waits any more."""
        self._open = open_
        self._where = where
        self._waits = waits
        self._over = over
        self._lock = threading.Lock()
        self.connection: Connection | None = None

    def ask(
        self,
        statement: bytes,
        params: Sequence[Param],
        decoders: Sequence[Decoder],
        *,
        silence: float,
    ) -> Rows:
        return self.ask_twice(statement, params, decoders, silence=silence)[0]

    def ask_twice(
        self,
        statement: bytes,
        params: Sequence[Param],
        decoders: Sequence[Decoder],
        *,
        silence: float,
    ) -> tuple[Rows, bool]:
        """The answer, and whether the statement may have been carried out before the one that was answered."""
        with self._lock:
            connection = self.connection
            try:
                if connection is not None:
                    return connection.ask(statement, params, decoders, silence=silence), False
            except (Lost, Rejected) as error:
                return self._persist(statement, params, decoders, silence, error)
            return self._persist(statement, params, decoders, silence, None)

    def _persist(
        self,
        statement: bytes,
        params: Sequence[Param],
        decoders: Sequence[Decoder],
        silence: float,
        failure: Lost | Rejected | None,
    ) -> tuple[Rows, bool]:
        started = time.monotonic()
        doubtful = isinstance(failure, Lost)
        pause, rounds = _FIRST_PAUSE, 0
        while True:
            if failure is not None:
                rounds += 1
                waited = time.monotonic() - started
                self._refuse_if_hopeless(failure, waited, rounds)
                self._over.wait(pause * (0.5 + random.random()))  # noqa: S311 - not a secret
                if self._over.is_set():
                    raise unreachable(self._where, f"the store was closed meanwhile; before that: {failure}", 0)
                pause = min(pause * 2, _LONGEST_PAUSE)
            try:
                if self.connection is None or self.connection.closed:
                    self.connection = self._open()
            except Lost as error:  # nothing was asked
                failure = error
                continue
            try:
                return self.connection.ask(statement, params, decoders, silence=silence), doubtful
            except Lost as error:
                failure, doubtful = error, True
            except Rejected as error:
                failure = error

    def _refuse_if_hopeless(self, failure: Lost | Rejected, waited: float, rounds: int) -> None:
        if isinstance(failure, Rejected):
            if failure.code in PASSING and rounds < _ROUNDS and waited < self._waits.patience:
                return
            if failure.code in PASSING:
                raise explain(failure, self._where) from failure
            raise failure
        if waited >= self._waits.patience:
            raise unreachable(self._where, str(failure), waited) from failure

    def close(self) -> None:
        """Whoever is using it is not waited for: without a connection it finds out by itself."""
        if self._lock.acquire(timeout=self._waits.silence):
            try:
                if self.connection is not None:
                    self.connection.close()
                self.connection = None
            finally:
                self._lock.release()
