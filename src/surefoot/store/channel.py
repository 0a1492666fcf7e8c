"""A connection for one purpose, made again when it was lost, for as long as patience lasts.

A question whose answer was lost may have been carried out. Writers get `doubtful` then, and check before they believe a
conflict: it may be their own commit, whose acknowledgement was lost.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from surefoot.errors import SurefootError
from surefoot.store.failure import Lost, Rejected

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0
_ROUNDS: Final = 20
"""So often a statement is sent again after a deadlock or the like."""


class Waits(Struct, frozen=True):
    """How long things may take."""

    connect: int = 5
    """For a connection; whole seconds, since some libraries take no fractions."""
    silence: float = 10.0
    """For an answer, before the connection is given up."""
    slow: float = 300.0
    """For an answer to a question that reads the whole store."""
    patience: float = 30.0
    """Until a server that went away is back."""
    lease: float = 10.0
    """Until others count a worker as dead."""


class Connected(Protocol):
    """A connection that may be lost at any time, which then says that it is closed."""

    @property
    def closed(self) -> bool: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=Connected)
T = TypeVar("T")


class Manners(Protocol):
    """What a kind of server means by its refusals."""

    def passing(self, failure: Rejected, /) -> bool:
        """Whether nothing has happened, and the same may well succeed a moment later."""

    def explain(self, failure: Rejected, where: str, /) -> SurefootError: ...

    def unreachable(self, where: str, why: str, seconds: float, /) -> SurefootError: ...


@contextmanager
def explained(where: str, manners: Manners) -> Iterator[None]:
    """For what is tried once: a failure as an error for users of the store."""
    try:
        yield
    except Lost as error:
        raise manners.unreachable(where, str(error), 0) from error
    except Rejected as error:
        raise manners.explain(error, where) from error


class Channel(Generic[C]):
    def __init__(
        self, open_: Callable[[], C], where: str, waits: Waits, over: threading.Event, manners: Manners
    ) -> None:
        """`open_` makes a connection and checks it; `over` is set when the store is closed."""
        self._open = open_
        self._where = where
        self._waits = waits
        self._over = over
        self._manners = manners
        self._lock = threading.Lock()
        self.connection: C | None = None

    def ask(self, question: Callable[[C], T]) -> T:
        return self.ask_twice(question)[0]

    def ask_twice(self, question: Callable[[C], T]) -> tuple[T, bool]:
        """The answer, and whether what was asked may have been carried out before the time that was answered."""
        with self._lock:
            failed_at, pause, rounds = 0.0, _FIRST_PAUSE, 0
            # A connection that was closed may have been given up in the middle of this very question.
            doubtful = self.connection is not None and self.connection.closed
            while True:
                failure: Lost | Rejected
                try:
                    if self.connection is None or self.connection.closed:
                        self.connection = self._open()
                except Lost as error:  # nothing was asked
                    failure = error
                else:
                    try:
                        return question(self.connection), doubtful
                    except Lost as error:
                        failure, doubtful = error, True
                    except Rejected as error:
                        failure = error
                rounds += 1
                failed_at = failed_at or time.monotonic()
                self._refuse_if_hopeless(failure, time.monotonic() - failed_at, rounds)
                self._over.wait(pause * (0.5 + random.random()))  # noqa: S311 - not a secret
                if self._over.is_set():
                    why = f"the store was closed meanwhile; before that: {failure}"
                    raise self._manners.unreachable(self._where, why, 0)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _refuse_if_hopeless(self, failure: Lost | Rejected, waited: float, rounds: int) -> None:
        if isinstance(failure, Rejected) and not self._manners.passing(failure):
            raise failure
        if waited < self._waits.patience and (isinstance(failure, Lost) or rounds < _ROUNDS):
            return
        if isinstance(failure, Rejected):
            raise self._manners.explain(failure, self._where) from failure
        raise self._manners.unreachable(self._where, str(failure), waited) from failure

    def close(self) -> None:
        """A thread that uses it is not waited for longer than an answer may take: without a connection it fails by itself."""
        if self._lock.acquire(timeout=self._waits.silence):
            try:
                if self.connection is not None:
                    self.connection.close()
                self.connection = None
            finally:
                self._lock.release()
