"""What can still be read of a damaged database: every row that answers, and the places that do not.

SQLite stops a scan at the first page that is not one. So a table is read from both ends towards the damage, and what
lies between is asked for row by row. Nothing that comes back is believed: a block of zeros inside a page gives rows
of nulls under the number 0, so every value is handed out with its type as stored, and whoever takes a row checks it.

Only reads, and only with statements that are fixed here. Text is taken as bytes: garbage is not UTF-8, and one such
row must not hide its neighbours.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from struct import Struct as Layout
from struct import unpack_from
from typing import Any, Final, NamedTuple

import apsw
from msgspec import Struct

ENTRY: Final = ("pos", "run", "seq", "epoch", "at", "kind", "schema", "codec", "key", "body", "seal")
COLUMNS: Final = {
    "meta": ("key", "value"),
    "entries": ENTRY,
    "heads": ("n", "run", "seq", "seal"),
    "parts": ("n", "id", "kind", "codec", "size", "body"),
    "quarantine": ("n", *ENTRY),
    "runs": (
        "run", "workflow", "status", "queue", "labels", "created", "seq", "checksum", "wake", "worker", "reason",
        "need", "address", "brief", "until", "marks", "n",
    ),
}  # fmt: skip
"""Every table of a store that is worth keeping; in each the first column is the one its rows are found by."""
_NOT_KEPT: Final = ("starts", "run_labels")
"""What a store can do without, or makes anew from its journals. Its pages may be damaged all the same."""
INDEXES: Final = {
    "heads": ("sqlite_autoindex_heads_1", ("run", "n"), "run"),
    "entries": ("sqlite_autoindex_entries_1", ("run", "seq", "pos"), "run, seq"),
    "parts": ("sqlite_autoindex_parts_1", ("id", "n"), "id"),
}
"""The indexes that hold a second copy of something: their names, what can be read from them alone, their order."""

SLACK: Final = 1_000_000
"""How far beyond the highest number that is known a row may be and still be taken for one."""
_PROBES: Final = 300_000
"""Questions for single rows of one table; beyond that the rest of a gap is left unread, and said to be."""
_ROWS_PER_PAGE: Final = 1024
"""More than any page of ours holds: pages that name each other in a circle come to an end."""
_PAGE_NAMED: Final = re.compile(r"\b[Pp]age (\d+)\b")
_TREE_NAMED: Final = re.compile(r"\bTree (\d+)\b")
_FINDINGS: Final = 100
"""After so many SQLite looks no further."""
_PAGE: Final = 4096
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_PAGE_HEADER: Final = Layout(">BxxHH")
_POINTERS_AT: Final = {2: 12, 5: 12, 10: 8, 13: 8}
"""The kinds of a page that holds rows, or the way to them, and where the places of its cells begin."""
_GARBAGE: Final = (apsw.Error, UnicodeDecodeError, MemoryError, OverflowError, ValueError)

Row = tuple[Any, ...]
"""Values as stored; a text that is not UTF-8 is an `Undecodable`."""


class Undecodable(bytes):
    """The bytes of a text that is none."""


class Gap(Struct, frozen=True):
    """Rows of a table, from one number to another, that could not be read, whether or not there are any."""

    table: str
    first: int
    last: int
    why: str


class BadPage(Struct, frozen=True):
    """What SQLite says about the structure of the database."""

    page: int
    """0: it names no page."""
    offset: int
    """Where the page begins in the database file. A newer copy of it may lie in the log."""
    why: str


class Scan(NamedTuple):
    """What an index gave."""

    rows: list[Row]
    whole: bool


def nothing_left(connection: apsw.Connection, path: str) -> bool:
    """Whether neither the database nor its log has a page left that could lead to a row.

    For a file that SQLite does not take for a database. It is read through the connection: whoever opens it beside
    SQLite drops its locks. What cannot be read is not nothing: then this raises.
    """
    return not any(map(_may_hold_rows, _pages(connection, path)))


def _pages(connection: apsw.Connection, path: str) -> Iterator[bytes]:
    """All but the first, which only describes the tables."""
    for offset in range(_PAGE, os.path.getsize(path), _PAGE):
        yield connection.read("main", 0, offset, _PAGE)[1]
    with contextlib.suppress(FileNotFoundError), open(path + "-wal", "rb") as log:
        log.seek(_LOG_HEADER)
        while frame := log.read(_FRAME_HEADER + _PAGE):
            yield frame[_FRAME_HEADER:].ljust(_PAGE, b"\0")


def _may_hold_rows(page: bytes) -> bool:
    """Half of its places make sense: SQLite itself takes a page only if all of them do."""
    kind, cells, content = _PAGE_HEADER.unpack_from(page)
    first = _POINTERS_AT.get(kind, 0)
    if not first or not cells or not first + 2 * cells <= content <= _PAGE:
        return False
    sensible = [place for place in unpack_from(f">{cells}H", page, first) if content <= place < _PAGE]
    return 2 * len(sensible) >= int(cells)


class Remains:
    """One damaged database, through an open connection to it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.gaps: list[Gap] = []
        self.page_size = 4096
        self.most_rows = _ROWS_PER_PAGE
        with contextlib.suppress(*_GARBAGE):
            self.page_size = int(connection.execute("PRAGMA page_size").get)
            self.most_rows = _ROWS_PER_PAGE * (int(connection.execute("PRAGMA page_count").get) + 1)

    def rows(self, table: str, known: Iterable[int] = (), *, upto: int = 0) -> Iterator[Row]:
        """Each row of a table with numbered rows that can be read, some twice. What cannot be is added to `gaps`.

        `known` are numbers that other places name, `upto` is the highest that there can be.
        """
        reader = _Reader(self, table)
        yield from reader.all(upto, list(known))
        self.gaps += reader.merged_gaps()

    def between(self, table: str, first: int, last: int) -> list[Row]:
        """The rows with these numbers, as far as they can be read."""
        key = COLUMNS[table][0]
        found: list[Row] = []
        question = f"SELECT {_as_stored(*COLUMNS[table])} FROM {table} NOT INDEXED WHERE {key} BETWEEN ? AND ?"  # noqa: S608 - our names
        self.collect(question, (first, last), found.append)
        return [_values(row) for row in found]

    def index(self, table: str) -> Scan:
        """What the index of a table says by itself, from both ends towards what cannot be read."""
        name, columns, order = INDEXES[table]
        question = f"SELECT {_as_stored(*columns)} FROM {table} INDEXED BY {name} ORDER BY "  # noqa: S608 - our names
        return self._from_both_ends(question, order)

    def keyed(self, table: str, names: Iterable[str]) -> Scan:
        """The rows of a table that is kept by name: from both ends, and those of the names that are known."""
        key = COLUMNS[table][0]
        question = f"SELECT {_as_stored(*COLUMNS[table])} FROM {table} "  # noqa: S608 - our names
        found = self._from_both_ends(f"{question} ORDER BY ", key)
        if found.whole:
            return found
        single: list[Row] = []
        for name in names:
            self.collect(f"{question} WHERE {key} = ?", (name,), single.append)
        return Scan(list(dict.fromkeys([*found.rows, *map(_values, single)])), whole=False)

    def _from_both_ends(self, question: str, order: str) -> Scan:
        found: list[Row] = []
        whole = self.collect(question + order, (), found.append) is None
        if not whole:
            self.collect(question + order.replace(",", " DESC,") + " DESC", (), found.append)
        return Scan(list(dict.fromkeys(map(_values, found))), whole=whole)

    def faults(self, table: str) -> list[str]:
        """What SQLite finds wrong with the structure of a table and its indexes."""
        found: list[Row] = []
        error = self.collect(f"PRAGMA quick_check({table})", (), found.append)
        lines = [line for (said, *_) in found for line in str(said).split("\n") if line and line != "ok"]
        lines = [line for line in lines if not line.startswith("***")]
        return lines + ([] if error is None else [str(error)])

    def bad_pages(self) -> list[BadPage]:
        """Every fault that names a page, and where that page is."""
        found: dict[tuple[int, str], BadPage] = {}
        for table in (*COLUMNS, *_NOT_KEPT):
            for line in self.faults(table):
                named = _PAGE_NAMED.search(line)
                page = int(named.group(1)) if named else 0
                found[page, line] = BadPage(page, max(page - 1, 0) * self.page_size, f"{table}: {line}")
        return list(found.values())

    def faultless_trees(self, table: str, *names: str) -> list[bool]:
        """For the table and each of its indexes by name, whether SQLite finds its pages in order."""
        roots: dict[Any, Any] = {}
        self.collect("SELECT name, rootpage FROM sqlite_schema", (), lambda row: roots.update([row]))
        faults = self.faults(table)
        trees = {int(tree.group(1)) for tree in map(_TREE_NAMED.search, faults) if tree is not None}
        # A fault that names no tree follows from one that does. Alone, or if SQLite gave up counting, it is everybody's.
        anybodys = len(faults) >= _FINDINGS if trees else bool(faults)
        return [name in roots and roots[name] not in trees and not anybodys for name in (table, *names)]

    def collect(self, question: str, values: Sequence[Any], take: Callable[[Row], object]) -> Exception | None:
        """Hand over answers until there are no more (None) or the database fails (why)."""
        try:
            for count, row in enumerate(self.connection.execute(question, values)):
                if count > self.most_rows:
                    return _circle()
                take(row)
        except _GARBAGE as error:
            return error
        return None


class _Reader:
    """The rows of one table that is kept by number. A row may come twice."""

    def __init__(self, remains: Remains, table: str) -> None:
        self._remains = remains
        self._table = table
        self._key = COLUMNS[table][0]
        self._select = f"SELECT {_as_stored(*COLUMNS[table])} FROM {table} NOT INDEXED "  # noqa: S608 - our names
        self._numbers: set[Any] = set()
        self._last: int | None = None
        self._limit = 0
        self._probes = 0
        self._gaps: list[Gap] = []

    def all(self, upto: int, known: list[int]) -> Iterator[Row]:
        self._limit = max([upto, *known]) + SLACK
        error = yield from self._read(f"ORDER BY {self._key}")
        if error is None:
            return
        low = self._last or 0
        yield from self._read(f"ORDER BY {self._key} DESC")
        high = max([upto, low, *known]) + 1 if self._last is None else self._last
        yield from self._probe(low + 1, high - 1)
        for number in known:
            if number not in self._numbers and not low < number < high:
                yield from self._probe(number, number)

    def merged_gaps(self) -> list[Gap]:
        merged: list[Gap] = []
        for gap in sorted(self._gaps, key=lambda gap: gap.first):
            if merged and gap.first <= merged[-1].last + 1:
                last = merged.pop()
                gap = Gap(last.table, last.first, max(last.last, gap.last), last.why)  # noqa: PLW2901
            merged.append(gap)
        return merged

    def _probe(self, first: int, last: int) -> Iterator[Row]:
        """Read a stretch from both ends; split what is left until single rows are known to be unreadable."""
        between = f"WHERE {self._key} BETWEEN ? AND ? ORDER BY {self._key}"
        stack = [(first, last)]
        while stack:
            low, high = stack.pop()
            if low > high:
                continue
            if self._probes > _PROBES:
                self._gaps.append(Gap(self._table, low, high, "too much is damaged to ask for every row"))
                continue
            self._probes += 2
            error = yield from self._read(between, (low, high))
            if error is None:
                continue
            if self._last is not None:
                low = min(max(low, self._last + 1), high + 1)
            yield from self._read(f"{between} DESC", (low, high))
            if self._last is not None:
                high = max(min(high, self._last - 1), low - 1)
            if low < high:
                middle = (low + high) // 2
                stack += [(middle + 1, high), (low, middle)]
            elif low == high:
                self._gaps.append(Gap(self._table, low, high, str(error)))

    def _read(self, how: str, values: Sequence[int] = ()) -> Generator[Row, None, Exception | None]:
        """Rows until the end (None) or an error (why)."""
        self._last = None
        try:
            for count, raw in enumerate(self._remains.connection.execute(self._select + how, values)):
                if count > self._remains.most_rows:
                    return _circle()
                row = _values(raw)
                if type(row[0]) is int and 0 < row[0] <= self._limit:  # a garbled number says nothing of where we are
                    self._last = row[0]
                    self._numbers.add(row[0])
                yield row
        except _GARBAGE as error:
            return error
        return None


def _circle() -> ValueError:
    return ValueError("its pages name each other in a circle")


def _as_stored(*columns: str) -> str:
    """Type and value of each column; text as its bytes."""
    kinds = "typeof({0}), CASE typeof({0}) WHEN 'text' THEN CAST({0} AS BLOB) ELSE {0} END"
    return ", ".join(kinds.format(column) for column in columns)


def _values(raw: Row) -> Row:
    """Pairs of type and value become values."""
    kinds = iter(raw)
    return tuple(_text(value) if kind == "text" else value for kind, value in zip(kinds, kinds, strict=True))


def _text(data: bytes) -> str | Undecodable:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return Undecodable(data)
