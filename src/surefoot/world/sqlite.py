"""A look into a SQLite database of the user, through the standard library, without leaving a trace.

Opened with `mode=ro`. One exception: SQLite cannot read a database in WAL mode without making `-wal` and `-shm` beside
it, and leaves them there. Where there is no `-wal`, everything is in the database file: then it is opened as
`immutable`, and the look is repeated if the file changed meanwhile.

A process that was killed while it wrote leaves a rollback journal, and until that is rolled back no process can read
the database without the right to write. Then it is opened for writing for an instant: SQLite rolls back what was never
committed, as it does for every reader that may write, and nothing else changes. Without this a run that watches the
database it writes to could not resume after its own crash.

If the code has the same file open through another copy of SQLite (apsw brings its own), the two do not see each
other's locks: the operating system decides that. Use `sqlite3` for files that are watched.
"""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

from surefoot.core.urls import Url
from surefoot.errors import UsageError
from surefoot.world.base import NotObservable, Pulse
from surefoot.world.databases import MOST_ROWS, OUR_TABLES, in_words
from surefoot.world.hashes import first_bytes
from surefoot.world.paths import as_written, shown
from surefoot.world.stores import APPLICATION_ID, is_a_store, refuse_store

Seen = TypeVar("Seen")

_TRIES: Final = 5
_WAL_VERSIONS: Final = b"\2\2"
"""The header bytes of a database in WAL mode."""
_HOT_JOURNAL: Final = "SQLITE_READONLY_ROLLBACK"
"""The error for a reader without the right to write, after a process died writing."""
_STEPS: Final = 10_000
"""Instructions of SQLite's machine between two looks at the clock."""
_LONGEST_VALUE: Final = 64 * 1024 * 1024
_READING: Final = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_PRAGMAS: Final = (
    "application_id", "encoding", "foreign_key_list", "index_info", "index_list", "index_xinfo", "journal_mode",
    "page_count", "schema_version", "table_info", "table_list", "table_xinfo", "user_version",
)  # fmt: skip
_TOKEN: Final = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<text>'(?:[^']|'')*')|"""
    r"""(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])|(?P<word>[\w$]+)|(?P<space>\s+)|(?P<sign>.)""",
    re.DOTALL,
)


def path_of(url: Url) -> str:
    """`sqlite:///name` is relative to the working folder, `sqlite:////name` absolute."""
    rest = url.given[len("sqlite:") :]
    path = unquote(rest[3:], errors="surrogateescape")
    if not rest.startswith("///") or "?" in rest or path in ("", ":memory:") or path.endswith("/"):
        raise UsageError(
            f"{url.shown!r:.200} does not name a SQLite database. Write sqlite:///relative.db or sqlite:////absolute.db; "
            "a question mark in a file's name is written %3F."
        )
    return as_written(path)


@contextmanager
def open_database(url: Url, pulse: Pulse) -> Iterator[SqliteDatabase]:
    path = path_of(url)
    refuse_store(path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise NotObservable(f"{shown(path)} is no file")
    database = SqliteDatabase(path, pulse)
    try:
        yield database
    except sqlite3.Error as error:
        raise _explained(error, path, pulse) from error


class SqliteDatabase:
    def __init__(self, path: str, pulse: Pulse) -> None:
        self._path = path
        self._pulse = pulse

    def query(self, query: str) -> tuple[list[str], Iterable[tuple[Any, ...]]]:
        return self._unmoved(lambda connection: _rows(connection, query))

    def tables(self, wanted: list[str] | None) -> dict[str, dict[str, Any]]:
        return self._unmoved(lambda connection: _tables(connection, wanted))

    def _unmoved(self, look: Callable[[sqlite3.Connection], Seen]) -> Seen:
        for _ in range(_TRIES):
            before = _signature(self._path)
            still = not os.path.exists(f"{self._path}-wal")
            if still and first_bytes(self._path, 20)[18:20] == _WAL_VERSIONS:
                with closing(self._connect("immutable=1")) as connection:
                    seen = look(connection)
                if _signature(self._path) == before and not os.path.exists(f"{self._path}-wal"):
                    return seen
            else:
                try:
                    with closing(self._connect("mode=ro")) as connection:
                        return look(connection)
                except sqlite3.OperationalError as error:
                    if _name(error) != _HOT_JOURNAL:
                        raise
                # SQLite decides by the lock whether its writer is dead; where we may not write, it fails in the same
                # way again.
                self._connect("mode=rw").close()
        raise NotObservable(f"{shown(self._path)} changes while it is being read ({_TRIES} attempts)")

    def _connect(self, how: str) -> sqlite3.Connection:
        name = quote(os.fsencode(os.path.abspath(self._path)))
        connection = sqlite3.connect(
            f"file:{name}?{how}", uri=True, isolation_level=None, timeout=max(0.1, self._pulse.left())
        )
        try:
            connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
            connection.set_progress_handler(lambda: int(self._pulse.left() <= 0), _STEPS)
            if connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,):
                raise is_a_store(self._path)  # noqa: TRY301 - closed below, as after any other failure
        except BaseException:
            connection.close()
            raise
        return connection


def _rows(connection: sqlite3.Connection, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    connection.set_authorizer(_only_reading)
    found = connection.execute(query)
    if found.description is None:
        raise NotObservable("the query returns no rows: a witness needs a SELECT")
    return [column[0] for column in found.description], found.fetchmany(MOST_ROWS + 1)


def _only_reading(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """A query may come from a store: it may only read this one database."""
    if action in _READING or (action == sqlite3.SQLITE_PRAGMA and first is not None and first.lower() in _PRAGMAS):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _signature(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")


def _explained(error: sqlite3.Error, path: str, pulse: Pulse) -> Exception:
    name = _name(error)
    if name == "SQLITE_INTERRUPT":
        return TimeoutError()
    if name.startswith("SQLITE_BUSY"):
        return NotObservable(f"{shown(path)} is locked by somebody who writes")
    if name.startswith("SQLITE_AUTH"):
        return NotObservable("the query does more than read; a witness only looks")
    if name == _HOT_JOURNAL:
        return NotObservable(
            f"{shown(path)}: a process died writing to it, and rolling that back takes the right to write here. "
            f"As somebody who has it: sqlite3 {shlex.quote(shown(path))} 'PRAGMA user_version'"
        )
    return NotObservable(f"{shown(path)}: {error}")


# --- tables ----------------------------------------------------------------------------------------


def _tables(connection: sqlite3.Connection, wanted: list[str] | None) -> dict[str, dict[str, Any]]:
    connection.execute("BEGIN")  # all of it at one moment
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    asked = None if wanted is None else {table.lower() for table in wanted}
    found: dict[str, dict[str, Any]] = {}
    for kind, name, _, definition in rows:
        internal = name.lower().startswith(("sqlite_", OUR_TABLES))
        if kind in ("table", "view") and (not internal if asked is None else name.lower() in asked):
            columns = _columns(connection, name) if kind == "table" else []
            found[name] = {"kind": kind, "definition": canonical(definition), "columns": columns}
    for table, looks in found.items():
        for more in ("index", "trigger"):
            looks[f"{more}es" if more == "index" else f"{more}s"] = {
                name: canonical(definition)
                for kind, name, of, definition in rows
                if kind == more and of.lower() == table.lower() and definition is not None
            }
    return found


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    rows = connection.execute(
        'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?) ORDER BY cid', (table,)
    )
    return [
        in_words(name, kind or "(no type)", not_null, default, f"PRIMARY KEY {key}" if key else "")
        for name, kind, not_null, default, key in rows
    ]


def canonical(definition: str | None) -> str:
    """A definition without parts that do not matter: comments, spacing, the case of words, quotes around names."""
    pieces = []
    for found in _TOKEN.finditer(definition or ""):
        if found.lastgroup in ("comment", "space"):
            continue
        text = found.group()
        if found.lastgroup == "word":
            text = text.lower()
        elif found.lastgroup == "quoted":
            text = _unquoted(text)
        pieces.append(text)
    return " ".join(pieces)


def _unquoted(text: str) -> str:
    """`"users"` is users; a name that needs its quotes keeps them."""
    inner = text[1:-1]
    return inner.lower() if re.fullmatch(r"[A-Za-z_]\w*", inner) else f'"{inner}"'
