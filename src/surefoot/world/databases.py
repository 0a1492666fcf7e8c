"""What a query returns, and what tables look like, in a database of the user's.

SQLite is read through the standard library, opened so that nothing can be written; PostgreSQL through psycopg, in a
transaction that is read-only. A surefoot store is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any, Final, Protocol

from surefoot.core import values
from surefoot.core.entry import ABSENT
from surefoot.core.urls import Url
from surefoot.errors import UsageError, ValueRejected
from surefoot.world.base import Look, NotObservable, Pulse, Specified, Witness, text_argument
from surefoot.world.urls import parsed

MOST_ROWS: Final = 100_000
MOST_BYTES: Final = 64 * 1024 * 1024
OUR_TABLES: Final = "surefoot_"
"""Tables that surefoot itself keeps in a database of the user's: their coming is not drift."""
_SCHEMES: Final = ("sqlite", "postgresql", "postgres")
_ORDERED: Final = re.compile(r"\border\s+by\b", re.IGNORECASE)
_SHORT: Final = 120


class Database(Protocol):
    def query(self, query: str) -> tuple[list[str], Iterable[tuple[Any, ...]]]:
        """The columns' names, and the rows."""

    def tables(self, wanted: list[str] | None) -> dict[str, dict[str, Any]]:
        """Table -> what it looks like."""


class Sql(Specified):
    def __init__(self, url: Url, query: str, name: str | None) -> None:
        self.query = query
        super().__init__(name, f"sql({url.shown}, {_short(query)})", url, look="sql", url=url.given, query=query)

    def look(self, pulse: Pulse) -> Look:
        with opened(self.url, pulse) as database:
            columns, found = database.query(self.query)
            rows = _bounded(found)
        if not _ORDERED.search(self.query):
            rows.sort(key=values.encode)  # a database may return them in any order, and that is no change
        return Look({f"sql:{self.url.shown}#{_short(self.query)}": values.digest([columns, rows])}, rows)


class DbSchema(Specified):
    def __init__(self, url: Url, tables: list[str] | None, name: str | None) -> None:
        self.tables = tables
        listed = f", tables={', '.join(tables)}" if tables is not None else ""
        called = f"db_schema({url.shown}{listed})"[:1000]
        super().__init__(name, called, url, look="db_schema", url=url.given, tables=json.dumps(tables))

    def look(self, pulse: Pulse) -> Look:
        with opened(self.url, pulse) as database:
            found = database.tables(self.tables)
        known = {table.lower() for table in found}
        missing = [table for table in self.tables or () if table.lower() not in known]
        parts = {self._part(table): values.digest(looks) for table, looks in sorted(found.items())}
        return Look(parts | {self._part(table): ABSENT for table in missing}, found)

    def _part(self, table: str) -> str:
        # With the database: two of them may have a table of that name.
        return f"schema:{self.url.shown}:{table}"


def sql(url: str, query: str, *, name: str | None = None) -> Witness:
    """What one query returns. Its value is the rows, a list of lists.

    Without ORDER BY the order of the rows does not count. Let the database count or sum up where there are many:
    `SELECT count(*), max(id) FROM orders`. In SQLite also `PRAGMA user_version`.
    """
    return Sql(_url(url), text_argument("query", query), name)


def db_schema(url: str, tables: Iterable[str] | None = None, *, name: str | None = None) -> Witness:
    """What tables look like: columns, types, constraints, indexes, triggers; each table is a part. Data is not read.

    Without `tables=`: all tables and views there are. One that is named and missing is absent.
    """
    if isinstance(tables, str):
        raise UsageError(f"tables= takes a list of names: [{tables!r:.100}]")
    wanted = None if tables is None else sorted({text_argument("tables", table) for table in tables})
    return DbSchema(_url(url), wanted, name)


def opened(url: Url, pulse: Pulse) -> AbstractContextManager[Database]:
    # Either is loaded only when it is needed: most runs watch no database.
    if url.scheme == "sqlite":
        from surefoot.world.sqlite import open_database

        return open_database(url, pulse)
    from surefoot.world.postgres import connect

    return connect(url, pulse)


def _url(url: str) -> Url:
    found = parsed(url, _SCHEMES)
    if found.scheme == "sqlite":
        from surefoot.world.sqlite import path_of

        path_of(found)
    return found


def _bounded(found: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    rows: list[list[Any]] = []
    size = 0
    for row in found:
        rows.append([_plain(value) for value in row])
        size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in rows[-1])
        if len(rows) > MOST_ROWS or size > MOST_BYTES:
            raise NotObservable(
                f"the query returns more than {MOST_ROWS} rows or {MOST_BYTES} bytes; let it count or sum up"
            )
    return rows


def _plain(value: Any) -> Any:
    """A value that can be stored; what a driver has types of its own for, as text."""
    if value is None or type(value) in (int, float, str, bool, bytes):
        return value
    try:
        values.encode(value)
    except ValueRejected:
        return str(value)
    return value


def _short(query: str) -> str:
    line = " ".join(query.split())
    if line == query and len(line) <= _SHORT:
        return line
    cut = line if len(line) <= _SHORT else f"{line[:_SHORT]}…"
    return f"{cut} ({sha256(query.encode()).hexdigest()[:12]})"
