"""A SQLite database of the user, through the standard library.

`BEGIN IMMEDIATE` takes the write lock at once, so a search for a marker waits for an open transaction. An
authorizer stands between user code and the end of the transaction: `INSERT OR ROLLBACK` may end it too, and the later
work of user code would be committed statement by statement, without a marker.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final
from urllib.parse import quote

from surefoot.core.urls import Url
from surefoot.engine.effects.databases.contract import CREATE, LOCK_SECONDS, TABLE, Marker, Work, meddled
from surefoot.errors import UsageError
from surefoot.world.base import NotObservable
from surefoot.world.sqlite import path_of
from surefoot.world.stores import refuse_store

_FULL: Final = 2
_ENDING: Final = (sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
_FIND: Final = f"SELECT digest, value FROM {TABLE} WHERE key = ?"  # noqa: S608 - a constant


class SqliteDatabase:
    def __init__(self, url: Url) -> None:
        self.name = url.shown
        self._path = path_of(url)

    def place(self) -> str:
        return file_place(self._path)

    def begin(self, *, make: bool = True) -> SqliteWork:
        self._refuse_store()
        if not make and not os.path.exists(self._path):
            raise FileNotFoundError(errno.ENOENT, "no such database", self._path)
        return SqliteWork(_connect(self._path, "rwc" if make else "rw"))

    def find(self, key: str) -> Marker | None:
        self._refuse_store()
        if not os.path.exists(self._path):
            return None  # Nothing was ever committed here, and reading must not create the file.
        with closing(_connect(self._path, "rw")) as db:
            db.execute("BEGIN IMMEDIATE")
            there = db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", [TABLE]).fetchone()
            found = db.execute(_FIND, [key]).fetchone() if there else None
            db.execute("ROLLBACK")
        return None if found is None else Marker(*found)

    def _refuse_store(self) -> None:
        try:
            refuse_store(self._path)
        except NotObservable:
            raise UsageError(
                f"{self.name} is a surefoot store; a transaction works in a database of your own, never in ours"
            ) from None


def file_place(path: str) -> str:
    """The real path: a relative path is another database in another working folder, and links are followed."""
    return "sqlite:///" + quote(os.fsencode(os.path.realpath(path)))


def _connect(path: str, mode: str) -> sqlite3.Connection:
    name = quote(os.fsencode(os.path.abspath(path)))
    # No cache of statements: the authorizer runs when a statement is prepared, and must check each.
    return sqlite3.connect(
        f"file:{name}?mode={mode}", uri=True, isolation_level=None, timeout=LOCK_SECONDS, cached_statements=0,
        check_same_thread=False,
    )  # fmt: skip


class SqliteWork(Work):
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._guarding = False
        self._denied = False
        try:
            if db.execute("PRAGMA synchronous").fetchone()[0] < _FULL:
                db.execute("PRAGMA synchronous = FULL")  # Else a power cut could undo a call that we recorded as done.
            db.execute("BEGIN IMMEDIATE")
        except BaseException:
            db.close()
            raise

    def mark(self, key: str, digest: str, at: str) -> Marker | None:
        self.db.execute(CREATE)
        found = self.db.execute(_FIND, [key]).fetchone()
        if found is not None:
            return Marker(*found)
        self.db.execute(f"INSERT INTO {TABLE} (key, digest, at) VALUES (?, ?, ?)", [key, digest, at])  # noqa: S608
        return None

    @contextmanager
    def guarded(self) -> Iterator[None]:
        self.db.set_authorizer(self._allow)
        self._guarding = True
        try:
            yield
        finally:
            self._guarding = False

    def _allow(self, action: int, *_: Any) -> int:
        if self._guarding and (action in _ENDING or not self.db.in_transaction):
            self._denied = True
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    def require_open(self, *, failed: bool = False) -> None:
        if self._denied or not (failed or self.db.in_transaction):
            raise meddled()

    def finish(self, key: str, value: str) -> None:
        given = self.db.execute(f"UPDATE {TABLE} SET value = ? WHERE key = ?", [value, key])  # noqa: S608 - a constant
        if given.rowcount != 1:
            raise meddled()

    def commit(self) -> None:
        try:
            super().commit()
        except sqlite3.Error:  # It was refused.
            self.rollback()
            raise

    def _commit(self) -> None:
        self.db.execute("COMMIT")

    def rollback(self) -> None:
        with suppress(sqlite3.Error):
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
