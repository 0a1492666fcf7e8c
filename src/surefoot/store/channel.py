"""A connection for one purpose, made again when it is lost, for a limited time.

A request whose answer was lost may have been executed. Writers then get `doubtful`, and check before they believe a
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
"""How often a statement is sent again after a deadlock or the like."""


class Waits(Struct, frozen=True):
    """Time limits."""

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
    """A connection that may be lost at any time, and then reports that it is closed."""

    @property
    def closed(self) -> bool: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=Connected)
T = TypeVar("T")


class Manners(Protocol):
    """The meaning of a server's refusals."""

    def passing(self, failure: Rejected, /) -> bool:
        """Whether nothing has happened, and another try may succeed a moment later."""

    def explain(self, failure: Rejected, where: str, /) -> SurefootError: ...

    def unreachable(self, where: str, why: str, seconds: float, /) -> SurefootError: ...


@contextmanager
def explained(where: str, manners: Manners) -> Iterator[None]:
    """For a single try: raises a failure as an error for users of the store."""
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
        """The answer, and whether the request may have been executed before the try that was answered."""
        with self._lock:
            failed_at, pause, rounds = 0.0, _FIRST_PAUSE, 0
            # A closed connection may have been given up in the middle of this very request.
            doubtful = self.connection is not None and self.connection.closed
            while True:
                failure: Lost | Rejected
                try:
                    if self.connection is None or self.connection.closed:
                        self.connection = self._open()
                except Lost as error:  # nothing was sent
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
        """Wait for a thread that uses it only as long as an answer may take: without a connection that thread fails."""
        if self._lock.acquire(timeout=self._waits.silence):
            try:
                if self.connection is not None:
                    self.connection.close()
                self.connection = None
            finally:
                self._lock.release()
