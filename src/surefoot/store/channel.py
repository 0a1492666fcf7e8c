"""A connection for one purpose, made again when it was lost, for as long as patience lasts.

What was lost on the way may have happened. Whoever writes is told so (`doubtful`) and looks before believing a
conflict: it may be their own commit, whose acknowledgement got lost.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from surefoot.errors import SurefootError
from surefoot.store.failure import Lost, Rejected

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0
_ROUNDS: Final = 20
"""So often a deadlock or the like is tried again."""


class Waits(Struct, frozen=True):
    """How long things may take."""

    connect: int = 5
    """A connection; whole seconds, for some servers' libraries take no others."""
    silence: float = 10.0
    """An answer, before the connection is given up."""
    slow: float = 300.0
    """The same, for questions that read the whole store."""
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


class Channel(Generic[C]):
    def __init__(
        self, open_: Callable[[], C], where: str, waits: Waits, over: threading.Event, manners: Manners
    ) -> None:
        """`open_` answers with a connection that was checked; `over` is set when nobody waits any more."""
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
            try:
                if self.connection is not None:
                    return question(self.connection), False
            except (Lost, Rejected) as error:
                return self._persist(question, error)
            return self._persist(question, None)

    def _persist(self, question: Callable[[C], T], failure: Lost | Rejected | None) -> tuple[T, bool]:
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
                    why = f"the store was closed meanwhile; before that: {failure}"
                    raise self._manners.unreachable(self._where, why, 0)
                pause = min(pause * 2, _LONGEST_PAUSE)
            try:
                if self.connection is None or self.connection.closed:
                    self.connection = self._open()
            except Lost as error:  # nothing was asked
                failure = error
                continue
            try:
                return question(self.connection), doubtful
            except Lost as error:
                failure, doubtful = error, True
            except Rejected as error:
                failure = error

    def _refuse_if_hopeless(self, failure: Lost | Rejected, waited: float, rounds: int) -> None:
        if isinstance(failure, Rejected):
            passing = self._manners.passing(failure)
            if passing and rounds < _ROUNDS and waited < self._waits.patience:
                return
            if passing:
                raise self._manners.explain(failure, self._where) from failure
            raise failure
        if waited >= self._waits.patience:
            raise self._manners.unreachable(self._where, str(failure), waited) from failure

    def close(self) -> None:
        """Whoever is using it is not waited for: without a connection it finds out by itself."""
        if self._lock.acquire(timeout=self._waits.silence):
            try:
                if self.connection is not None:
                    self.connection.close()
                self.connection = None
            finally:
                self._lock.release()
