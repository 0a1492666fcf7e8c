"""The result of a query, and the schema of tables, in a database of the user.

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
from surefoot.world.base import Look, NotObservable, Pulse, Ready, Witness, text_argument
from surefoot.world.urls import parsed

MOST_ROWS: Final = 100_000
MOST_BYTES: Final = 64 * 1024 * 1024
OUR_TABLES: Final = "surefoot_"
"""Tables that surefoot itself keeps in a database of the user: their creation is not drift."""
_SCHEMES: Final = ("sqlite", "postgresql", "postgres")
_ORDERED: Final = re.compile(r"\border\s+by\b", re.IGNORECASE)
_SHORT: Final = 120


class Database(Protocol):
    def query(self, query: str) -> tuple[list[str], Iterable[tuple[Any, ...]]]:
        """The columns' names, and the rows."""

    def tables(self, wanted: list[str] | None) -> dict[str, dict[str, Any]]:
        """Table -> its schema."""


def sql(url: str, query: str, *, name: str | None = None) -> Witness:
    """What one query returns. Its value is the rows, a list of lists.

    Without ORDER BY the order of the rows does not count. Let the database count or sum up where there are many:
    `SELECT count(*), max(id) FROM orders`. In SQLite also `PRAGMA user_version`.
    """
    at, told = _url(url), _short(text_argument("query", query))

    def look(pulse: Pulse) -> Look:
        with opened(at, pulse) as database:
            columns, found = database.query(query)
            rows = _bounded(found)
        if not _ORDERED.search(query):
            rows.sort(key=values.encode)  # a database may return them in any order: that is no change
        return Look({f"sql:{at.shown}#{told}": values.digest([columns, rows])}, rows)

    return Ready(name, f"sql({at.shown}, {told})", look, at, look="sql", url=at.given, query=query)


def db_schema(url: str, tables: Iterable[str] | None = None, *, name: str | None = None) -> Witness:
    """What tables look like: columns, types, constraints, indexes, triggers; each table is a part. Data is not read.

    Without `tables=`: all tables and views there are. One that is named and missing is absent.
    """
    if isinstance(tables, str):
        raise UsageError(f"tables= takes a list of names: [{tables!r:.100}]")
    wanted = None if tables is None else sorted({text_argument("tables", table) for table in tables})
    at, listed = _url(url), f", tables={', '.join(wanted)}" if wanted is not None else ""
    part = f"schema:{at.shown}:"  # With the database: two databases may have a table of the same name.

    def look(pulse: Pulse) -> Look:
        with opened(at, pulse) as database:
            found = database.tables(wanted)
        known = {table.lower() for table in found}
        missing = {part + table: ABSENT for table in wanted or () if table.lower() not in known}
        return Look({part + table: values.digest(looks) for table, looks in sorted(found.items())} | missing, found)

    called = f"db_schema({at.shown}{listed})"[:1000]
    return Ready(name, called, look, at, look="db_schema", url=at.given, tables=json.dumps(wanted))


def in_words(name: str, kind: str, not_null: bool, default: Any, more: str) -> str:
    """A column."""
    given = ["NOT NULL"] * bool(not_null) + [f"DEFAULT {default}"] * (default is not None) + [more] * bool(more)
    return " ".join([name, kind, *given])


def opened(url: Url, pulse: Pulse) -> AbstractContextManager[Database]:
    # Each module is loaded only when needed: most runs watch no database.
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
    """A value that can be stored; values of a driver's own types, as text."""
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
