"""A database behind a SQLAlchemy engine of the user: SQLite or PostgreSQL, with the user's pool.

Nothing is imported from SQLAlchemy before there is an engine: a process with an engine has SQLAlchemy.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from surefoot.core.urls import parse
from surefoot.engine.effects.databases.contract import CREATE, TABLE, Marker, Work, meddled
from surefoot.engine.effects.databases.postgres import DURABLE, server_place
from surefoot.engine.effects.databases.sqlite import file_place
from surefoot.errors import UsageError

_DIALECTS: Final = ("sqlite", "postgresql")
_INSERT: Final = f"INSERT INTO {TABLE} (key, digest, at) VALUES (:key, :digest, :at) ON CONFLICT (key) DO NOTHING"  # noqa: S608
_FIND: Final = f"SELECT digest, value FROM {TABLE} WHERE key = :key"  # noqa: S608 - a constant
_FINISH: Final = f"UPDATE {TABLE} SET value = :value WHERE key = :key"  # noqa: S608 - a constant


def _text(statement: str) -> Any:
    return import_module("sqlalchemy").text(statement)


class AlchemyDatabase:
    def __init__(self, engine: Any) -> None:
        if hasattr(engine, "sync_engine"):
            raise UsageError(
                "an AsyncEngine cannot be used here: pass an engine made with sqlalchemy.create_engine; "
                "surefoot keeps its work off the event loop"
            )
        if engine.dialect.name not in _DIALECTS:
            raise UsageError(
                f"transactions work with {' and '.join(_DIALECTS)}; this engine's dialect is {engine.dialect.name}"
            )
        self.name = engine.url.render_as_string(hide_password=True)
        self._engine = engine

    def place(self) -> str:
        """The same as for the URL: an engine for the same database is the same place."""
        url = self._engine.url
        if self._engine.dialect.name == "sqlite":
            file = url.database or ":memory:"
            return f"sqlite:{file}" if file.startswith((":memory:", "file:")) else file_place(file)
        try:
            return server_place(parse(url.render_as_string(hide_password=False), ("postgresql",)))
        except UsageError:  # SQLAlchemy can write URLs that libpq could not read
            return f"postgresql://{url.username or ''}@{url.host or ''}:{url.port or ''}/{url.database or ''}"

    def begin(self, *, make: bool = True) -> AlchemyWork:
        if not import_module("sqlalchemy").inspect(self._engine).has_table(TABLE):
            with suppress(import_module("sqlalchemy.exc").DBAPIError), self._engine.begin() as db:
                db.execute(_text(CREATE))  # Another process may create it now: then the next line finds it.
        return AlchemyWork(self._engine)

    def find(self, key: str) -> Marker | None:
        if not import_module("sqlalchemy").inspect(self._engine).has_table(TABLE):
            return None
        work = AlchemyWork(self._engine)
        try:
            return work.mark(key, "", "")
        finally:
            work.rollback()
            work.close()


class AlchemyWork(Work):
    def __init__(self, engine: Any) -> None:
        self.db = engine.connect()
        self._is_server = engine.dialect.name == "postgresql"
        self._marked = False
        try:
            self._transaction = self.db.begin()
            self._number = self._current()
            if self._is_server:
                if self._current() != self._number:
                    raise _autocommit()  # noqa: TRY301 - closed below, as after any other failure
                self.db.execute(_text(DURABLE))
        except BaseException:
            self.close()
            raise

    def _current(self) -> str:
        return str(self.db.execute(_text("SELECT txid_current()")).scalar()) if self._is_server else ""

    def mark(self, key: str, digest: str, at: str) -> Marker | None:
        given = self.db.execute(_text(_INSERT), {"key": key, "digest": digest, "at": at})
        if not self._is_server and not self.db.connection.dbapi_connection.in_transaction:
            if given.rowcount == 1:
                self.db.execute(_text(f"DELETE FROM {TABLE} WHERE key = :key"), {"key": key})  # noqa: S608
            raise _autocommit()
        if given.rowcount == 1:
            self._marked = True
            return None
        return Marker(*self.db.execute(_text(_FIND), {"key": key}).one())

    def require_open(self, *, failed: bool = False) -> None:
        if failed and self.db.invalidated:
            return
        whole = self._transaction.is_active and self.db.get_transaction() is self._transaction
        if not whole or self._current() != self._number:
            raise meddled()
        if self._marked and not self._is_server and not self.db.connection.dbapi_connection.in_transaction:
            raise meddled()

    def finish(self, key: str, value: str) -> None:
        if self.db.execute(_text(_FINISH), {"key": key, "value": value}).rowcount != 1:
            raise meddled()

    def _commit(self) -> None:
        self._transaction.commit()

    def rollback(self) -> None:
        with suppress(Exception):
            self._transaction.rollback()


def _autocommit() -> UsageError:
    return UsageError(
        "this engine commits every statement by itself (AUTOCOMMIT): a transaction needs one that does not"
    )
