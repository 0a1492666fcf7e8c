"""A look into a PostgreSQL database, through psycopg, in a read-only transaction with a time limit on the server too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from surefoot.core.urls import Url
from surefoot.errors import UsageError
from surefoot.world.base import NotObservable, Pulse
from surefoot.world.databases import MOST_ROWS, OUR_TABLES, in_words

_TABLES: Final = """
    SELECT c.oid, n.nspname, c.relname, c.relkind::text,
           CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_t%%'
    ORDER BY n.nspname, c.relname"""
_COLUMNS: Final = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid),
           a.attidentity::text || a.attgenerated::text
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
_MORE: Final = {
    "constraints": "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s ORDER BY conname",
    "indexes": """
        SELECT c.relname, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = %s ORDER BY c.relname""",
    "triggers": """
        SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = %s AND NOT tgisinternal ORDER BY tgname""",
}
_KINDS: Final = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table"}


def driver() -> Any:
    try:
        return import_module("psycopg")  # no import statement: its types are not at hand everywhere
    except ImportError:
        raise UsageError('PostgreSQL needs psycopg: pip install "psycopg[binary]"') from None


@contextmanager
def connect(url: Url, pulse: Pulse) -> Iterator[PostgresDatabase]:
    psycopg = driver()
    seconds = max(2, math.ceil(pulse.left()))  # libpq takes whole seconds, and two at least
    try:
        with psycopg.connect(url.given, connect_timeout=seconds) as connection:
            connection.read_only = True
            # Times are shown in the session's zone, which differs between machines.
            connection.execute(
                "SELECT set_config('statement_timeout', %s, true), set_config('TimeZone', 'UTC', true)",
                [f"{max(1, int(pulse.left() * 1000))}ms"],
            )
            yield PostgresDatabase(connection)
            connection.rollback()
    except psycopg.errors.QueryCanceled:
        raise TimeoutError from None
    except psycopg.errors.ReadOnlySqlTransaction:
        raise NotObservable("the query does more than read; a witness only looks") from None
    except psycopg.Error as error:
        raise NotObservable(str(error).strip().partition("\n")[0] or type(error).__name__) from None


class PostgresDatabase:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def query(self, query: str) -> tuple[list[str], Iterable[tuple[Any, ...]]]:
        # Prepared, so it is a single statement: it cannot end the read-only transaction and go on after it.
        found = self._connection.execute(query, prepare=True)
        if found.description is None:
            raise NotObservable("the query returns no rows: a witness needs a SELECT")
        return [column.name for column in found.description], found.fetchmany(MOST_ROWS + 1)

    def tables(self, wanted: list[str] | None) -> dict[str, dict[str, Any]]:
        """By name if the schema is the current one, else as `schema.table`."""
        (current,) = self._connection.execute("SELECT current_schema()").fetchone()
        asked = None if wanted is None else {table.lower() for table in wanted}
        found: dict[str, dict[str, Any]] = {}
        for oid, schema, table, kind, definition in self._connection.execute(_TABLES.replace("%%", "%")).fetchall():
            name = table if schema == current else f"{schema}.{table}"
            if not table.startswith(OUR_TABLES) if asked is None else name.lower() in asked:
                found[name] = self._describe(oid, _KINDS[kind], definition)
        return found

    def _describe(self, oid: int, kind: str, definition: str | None) -> dict[str, Any]:
        looks: dict[str, Any] = {"kind": kind, "definition": definition or ""}
        looks["columns"] = [
            in_words(name, type_, not_null, default, f"({generated})" if generated else "")
            for name, type_, not_null, default, generated in self._connection.execute(_COLUMNS, [oid])
        ]
        for more, query in _MORE.items():
            looks[more] = dict(self._connection.execute(query, [oid]).fetchall())
        return looks
