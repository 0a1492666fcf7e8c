"""A PostgreSQL database of the user, through psycopg.

COMMIT is sent only after the marker's row was acknowledged. So a process that inserts the same key waits for a COMMIT that is
still on its way, even if its sender is dead: "absent" is certain then. Nothing relies on the session (poolers).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from surefoot.core.urls import Url
from surefoot.engine.effects.databases.contract import CREATE, LOCK_SECONDS, TABLE, Marker, Work, meddled
from surefoot.world.postgres import driver

_CONNECT_SECONDS: Final = 10
_PORT: Final = 5432
_WAIT: Final = "SELECT set_config('lock_timeout', %s, true)"
DURABLE: Final = (
    "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
)
_INSERT: Final = (
    f"INSERT INTO {TABLE} (key, digest, at) VALUES (%s, %s, %s) "  # noqa: S608 - a constant
    "ON CONFLICT (key) DO NOTHING RETURNING txid_current()::text"
)
_FIND: Final = f"SELECT digest, value FROM {TABLE} WHERE key = %s"  # noqa: S608 - a constant
_FINISH: Final = f"UPDATE {TABLE} SET value = %s WHERE key = %s"  # noqa: S608 - a constant


class PostgresDatabase:
    def __init__(self, url: Url) -> None:
        self.name = url.shown
        self._url = url.given
        self._place = server_place(url)

    def place(self) -> str:
        return self._place

    def begin(self, *, make: bool = True) -> PostgresWork:
        return PostgresWork(self._connect())

    def find(self, key: str) -> Marker | None:
        with self._connect() as db:
            if not _has_table(db):
                return None
            # A transaction that is rolled back in any case: it only waits for the transaction that holds the key.
            db.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            try:
                found = _marked(db, key, "", "")
            finally:
                with suppress(driver().Error):
                    db.execute("ROLLBACK")
            return found if isinstance(found, Marker) else None

    def _connect(self) -> Any:
        return driver().connect(
            self._url, autocommit=True, prepare_threshold=None, connect_timeout=_CONNECT_SECONDS
        )  # fmt: skip


_HOW: Final = ("application_name", "connect_timeout", "keepalives", "ssl", "tcp_", "gss", "channel_", "passfile")
"""Prefixes of URL fields about how to connect, not to which database."""


def server_place(url: Url) -> str:
    """The server, the database and its user (who may have a schema of their own), for any way of connecting."""
    pieces = urlsplit(url.shown)
    user, at, _ = pieces.netloc.rpartition("@")
    user = user.partition(":")[0]
    try:
        host, port = pieces.hostname or "", pieces.port or _PORT
    except ValueError:  # several hosts: the one that answers
        host, port = pieces.netloc.rpartition("@")[2], 0
    where = "&".join(sorted(field for field in pieces.query.split("&") if field and not field.startswith(_HOW)))
    return f"postgresql://{user}{at}{host}{f':{port}' if port else ''}{pieces.path}{'?' if where else ''}{where}"


def _has_table(db: Any) -> bool:
    return db.execute("SELECT to_regclass(%s)", [TABLE]).fetchone()[0] is not None


def _marked(db: Any, key: str, digest: str, at: str) -> Marker | str:
    """The marker of this key; or the number of our transaction, which has just written it."""
    db.execute(_WAIT, [f"{LOCK_SECONDS}s"])
    try:
        ours = db.execute(_INSERT, [key, digest, at]).fetchone()
    except driver().errors.LockNotAvailable:
        raise TimeoutError("another transaction of the same effect is still under way on the server") from None
    db.execute("SET LOCAL lock_timeout TO DEFAULT")
    if ours is not None:
        return str(ours[0])
    return Marker(*db.execute(_FIND, [key]).fetchone())


class PostgresWork(Work):
    def __init__(self, db: Any) -> None:
        self.db = db
        self._number = ""
        try:
            if not _has_table(db):
                _create(db)
            self._transaction = db.transaction()
            self._transaction.__enter__()  # Inside it, psycopg itself refuses commit() and rollback().
            db.execute(DURABLE)
            self._number = self._current()
        except BaseException:
            db.close()
            raise

    def _current(self) -> str:
        return str(self.db.execute("SELECT txid_current()::text").fetchone()[0])

    def mark(self, key: str, digest: str, at: str) -> Marker | None:
        found = _marked(self.db, key, digest, at)
        return found if isinstance(found, Marker) else None

    def require_open(self, *, failed: bool = False) -> None:
        status = self.db.info.transaction_status
        if failed and self.db.closed:
            return
        if status == driver().pq.TransactionStatus.INERROR:
            raise driver().errors.InFailedSqlTransaction(
                "a statement failed, and PostgreSQL takes no more in this transaction; let its exception out"
            )
        if status != driver().pq.TransactionStatus.INTRANS or self._current() != self._number:
            raise meddled()

    def finish(self, key: str, value: str) -> None:
        if self.db.execute(_FINISH, [value, key]).rowcount != 1:
            raise meddled()

    def _commit(self) -> None:
        self._transaction.__exit__(None, None, None)

    def rollback(self) -> None:
        error = driver().Rollback()
        with suppress(Exception):
            self._transaction.__exit__(type(error), error, None)


def _create(db: Any) -> None:
    """Create the table. IF NOT EXISTS does not help if another process creates it at the same moment."""
    errors = driver().errors
    with suppress(errors.UniqueViolation, errors.DuplicateTable):
        db.execute(CREATE)
