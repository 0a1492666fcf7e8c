"""One row, written to a table of the user: inserted, or updated if its key exists. Twice has the effect of once.

Names of tables and columns are no data: only plain identifiers are accepted, and they are quoted; values are bound.
"""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from surefoot.engine.declare import current
from surefoot.engine.effects.databases.contract import Database
from surefoot.engine.effects.databases.opening import database_of
from surefoot.engine.workflow import effect
from surefoot.errors import UsageError

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_PLAIN: Final = (type(None), bool, int, float, str, bytes)
_SERVER: Final = (*_PLAIN, Decimal, dt.date, dt.datetime, dt.time, uuid.UUID)


def upsert(url: str, table: str, key: str | Sequence[str], row: Mapping[str, Any]) -> None:
    """Insert the row; where one with the same `key` (a column of it, or several) is there, update that.

    `sqlite:///app.db` or `postgresql://…`; the key columns need a unique index. Columns that `row` does not name stay
    as they are. After a crash it is done again.
    """
    database = database_of(url)
    keys = [key] if isinstance(key, str) else list(key)
    is_server = not database.name.startswith("sqlite:")
    _require(table, keys, row, is_server=is_server)
    _upsert(database.name, table, keys, dict(row), database)


@effect(name="upsert", on_crash="retry", ignore="database")
def _upsert(url: str, table: str, key: list[str], row: dict[str, Any], database: Database) -> None:
    statement = _statement(table, key, list(row), "%s" if not url.startswith("sqlite:") else "?")
    try:
        work = database.begin(make=False)  # a row needs a table, which a new database does not have
    except Exception as error:
        current.rolled_back(error)
        raise
    try:
        try:
            work.db.execute(statement, list(row.values()))
        except Exception as error:
            current.rolled_back(error)
            raise
        work.commit()
    except sqlite3.Error as error:
        error.args = (f"{url}: {error}",)  # SQLite does not name the file
        raise
    finally:
        work.rollback()
        work.close()


def _statement(table: str, key: list[str], columns: list[str], sign: str) -> str:
    others = [column for column in columns if column not in key]
    update = ", ".join(f"{_quoted(column)} = excluded.{_quoted(column)}" for column in others)
    return (
        f"INSERT INTO {_quoted(table)} ({', '.join(map(_quoted, columns))}) "  # noqa: S608 - only checked identifiers
        f"VALUES ({', '.join([sign] * len(columns))}) ON CONFLICT ({', '.join(map(_quoted, key))}) "
        f"DO {f'UPDATE SET {update}' if update else 'NOTHING'}"
    )


def _quoted(name: str) -> str:
    return ".".join(f'"{part}"' for part in name.split("."))


def _require(table: Any, keys: list[Any], row: Any, *, is_server: bool) -> None:
    """Check the arguments before anything is recorded, so that fixed code can go on."""
    parts = table.split(".") if isinstance(table, str) else []
    if not 1 <= len(parts) <= 2 or not all(map(_NAME.fullmatch, parts)):
        raise UsageError(f"upsert: {table!r:.100} is not the plain name of a table, like orders or shop.orders")
    if not isinstance(row, Mapping) or not row:
        raise UsageError(f"upsert: row= is a dict of columns and values with at least one column, not {row!r:.100}")
    for column in (*row, *keys):
        if not isinstance(column, str) or not _NAME.fullmatch(column):
            raise UsageError(f"upsert: {column!r:.100} is not the plain name of a column")
    if not keys or len(set(keys)) != len(keys) or not all(column in row and row[column] is not None for column in keys):
        raise UsageError(
            f"upsert: every key column needs a value in the row; key={keys!r:.100}, columns: {', '.join(row)}"
        )
    for column, value in row.items():
        if type(value) not in (_SERVER if is_server else _PLAIN):
            raise UsageError(
                f"upsert: {column} has a {type(value).__name__}; a "
                f"{'PostgreSQL' if is_server else 'SQLite'} column takes plain values only. Convert it first."
            )
