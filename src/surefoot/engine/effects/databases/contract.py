"""surefoot's work in a database of the user: one transaction, in which a marker row commits with the user's rows.

The marker is written *first*, so that two transactions of one key can never both commit: the second waits for the
first, and then finds its marker. Its value comes last, so a marker without one shows that the function itself committed
half-way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

from msgspec import Struct

from surefoot.errors import SurefootError, UsageError

LOCK_SECONDS: Final = 30
"""How long we wait for other holders of a lock."""
TABLE: Final = "surefoot_markers"
CREATE: Final = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (key TEXT PRIMARY KEY, digest TEXT NOT NULL, value TEXT, at TEXT NOT NULL)"
)


class Marker(Struct, frozen=True):
    """Proof that the transaction of an effect was committed, and its result."""

    digest: str
    value: str | None
    """As recorded; None: committed before the function had returned, by the function itself."""


class Meddled(UsageError):
    """User code ended the transaction that was opened for it."""


class MarkerUnclear(SurefootError):
    """There is a marker, but it does not prove that this very call was executed."""


class Work(ABC):
    """One open transaction."""

    db: Any
    """The connection for user code."""

    @abstractmethod
    def mark(self, key: str, digest: str, at: str) -> Marker | None:
        """Write the marker. Returns the existing marker, if there is one."""

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """While user code runs: it may not end the transaction."""
        yield

    @abstractmethod
    def finish(self, key: str, value: str) -> None:
        """Give the marker its value."""

    @abstractmethod
    def require_open(self, *, failed: bool = False) -> None:
        """`Meddled` if user code has ended the transaction. `failed`: it raised, so the database may have."""

    def commit(self) -> None:
        """Raises the database's error if certainly nothing was committed; else `ConnectionError`: in doubt."""
        try:
            self._commit()
        except Exception as error:
            if refused(error):
                raise
            raise ConnectionError(
                f"whether COMMIT went through is not known ({type(error).__name__}: {error})"
            ) from error

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None:
        """Roll back everything. Never raises: the other side rolls back a lost connection."""

    def close(self) -> None:
        with suppress(Exception):
            self.db.close()


class Database(Protocol):
    name: str

    def place(self) -> str:
        """The database, without passwords: recorded with every transaction that is begun in it."""

    def begin(self, *, make: bool = True) -> Work:
        """`make`: a missing database file is made."""

    def find(self, key: str) -> Marker | None:
        """The marker of this key, read when no open transaction can still commit one."""


def meddled() -> Meddled:
    return Meddled(
        "a transaction was ended by the function it was opened for: no commit(), rollback(), COMMIT or ATTACH in it. "
        "surefoot commits once the function has returned; raise an exception to roll back."
    )


_REFUSED: Final = ("23", "40")
"""SQLSTATE classes with which a server refuses a COMMIT: constraints and serialization."""
_UNKNOWN: Final = "40003"


def refused(error: BaseException) -> bool:
    """Whether a failed COMMIT certainly committed nothing, according to the database itself."""
    said = getattr(error, "orig", None) or error
    state = getattr(said, "sqlstate", None) or getattr(said, "pgcode", None)
    if isinstance(state, str):
        return state[:2] in _REFUSED and state != _UNKNOWN
    code = getattr(said, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in (5, 19)  # SQLITE_BUSY, SQLITE_CONSTRAINT
