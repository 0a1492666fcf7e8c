"""What can still be read of a damaged database: every readable row, and the unreadable places.

SQLite stops a scan at the first damaged page. So a table is read from both ends towards the damage, and the rows
between are read one by one. A row that is returned may be garbage: a block of zeros inside a page gives rows of
nulls under the number 0. So every value is handed out with its type as stored, and callers check each row (`fits`).

This module only reads, and only with fixed statements. Text is read as bytes: garbage is not UTF-8, and one such row must
not hide its neighbours.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from struct import Struct as Layout
from struct import unpack_from
from typing import Annotated, Any, Final, NamedTuple

import apsw
import msgspec
from msgspec import Meta, Struct

from surefoot.core.seal import Record
from surefoot.store.sqlite.schema import COLUMNS

_NOT_KEPT: Final = ("starts", "run_labels")
"""Tables that a store does not need, or makes anew from its journals. Their pages may be damaged, too."""
INDEXES: Final = {
    "heads": ("sqlite_autoindex_heads_1", ("run", "n"), "run"),
    "entries": ("sqlite_autoindex_entries_1", ("run", "seq", "pos"), "run, seq"),
    "parts": ("sqlite_autoindex_parts_1", ("id", "n"), "id"),
}
"""The indexes that hold a second copy of something: their names, the columns in them alone, their order."""

LOST_HEAD: Final = bytes(32)
"""The seal of a head that could not be read. No record has it."""
_Number = Annotated[int, Meta(gt=0)]
_Count = Annotated[int, Meta(ge=0)]
_Name = Annotated[str, Meta(min_length=1)]
_Seal = Annotated[bytes, Meta(min_length=32, max_length=32)]
_SHAPES: Final[dict[str, Any]] = {
    "heads": tuple[_Number, _Name, _Count, _Seal],
    "entries": tuple[_Number, _Name, _Number, _Count, _Count, _Count, _Count, _Count, _Count, bytes, _Seal],
    "parts": tuple[_Number, bytes, int, int, int, bytes],
}
"""The types of a row of a table. A row of other types is garbage."""

SLACK: Final = 1_000_000
"""How far above the highest known number a row may be and still count as a row."""
_PROBES: Final = 300_000
"""The most reads of single rows of one table. After that, the rest of a gap is reported as unread."""
_ROWS_PER_PAGE: Final = 1024
"""More than any page of ours holds: it ends a circle of pages that name each other."""
_PAGE_NAMED: Final = re.compile(r"\b[Pp]age (\d+)\b")
_TREE_NAMED: Final = re.compile(r"\bTree (\d+)\b")
_FINDINGS: Final = 100
"""After this many findings SQLite stops its check."""
_PAGE: Final = 4096
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_PAGE_HEADER: Final = Layout(">BxxHH")
_POINTERS_AT: Final = {2: 12, 5: 12, 10: 8, 13: 8}
"""The kinds of pages that hold rows, or lead to them, and where the list of their cells begins."""
_CIRCLE: Final = "its pages name each other in a circle"
_GARBAGE: Final = (apsw.Error, UnicodeDecodeError, MemoryError, OverflowError, ValueError)

Row = tuple[Any, ...]
"""Values as stored; a text that is not UTF-8 is an `Undecodable`."""


class Undecodable(Struct, frozen=True):
    """A text that is not UTF-8."""

    data: bytes


class Gap(Struct, frozen=True):
    """Rows of a table, from one number to another, that could not be read, whether or not there are any."""

    table: str
    first: int
    last: int
    why: str


class BadPage(Struct, frozen=True):
    """SQLite's finding about the structure of the database."""

    page: int
    """0: it names no page."""
    offset: int
    """Where the page begins in the database file. A newer copy of it may lie in the log."""
    why: str


class Scan(NamedTuple):
    """The result of reading an index."""

    rows: list[Row]
    whole: bool


def fits(table: str, row: Row) -> bool:
    """Whether these values, as stored, can be a row of that table."""
    try:
        msgspec.convert(row, _SHAPES[table], builtin_types=(bytes,))
    except msgspec.ValidationError:
        return False
    return True


def is_number(value: object) -> bool:
    return type(value) is int and value > 0


def is_name(value: object) -> bool:
    return type(value) is str and bool(value)


def nothing_left(connection: apsw.Connection, path: str) -> bool:
    """Whether neither the database nor its log has a page left that could lead to a row.

    For a file that SQLite does not accept as a database. It is read through the connection: a second descriptor of the
    file would drop SQLite's locks when it is closed. "Unreadable" is never "nothing there": then this raises.
    """
    return not any(map(_may_hold_rows, _pages(connection, path)))


def _pages(connection: apsw.Connection, path: str) -> Iterator[bytes]:
    """All pages but the first, which only describes the tables."""
    for offset in range(_PAGE, os.path.getsize(path), _PAGE):
        yield connection.read("main", 0, offset, _PAGE)[1]
    with contextlib.suppress(FileNotFoundError), open(path + "-wal", "rb") as log:
        log.seek(_LOG_HEADER)
        while frame := log.read(_FRAME_HEADER + _PAGE):
            yield frame[_FRAME_HEADER:].ljust(_PAGE, b"\0")


def _may_hold_rows(page: bytes) -> bool:
    """Whether at least half of its cells are where cells can be. (SQLite itself requires that of all cells.)"""
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
        """Each row of a table with numbered rows that can be read, some twice. Unreadable ones are added to `gaps`.

        `known` are numbers that other places name, `upto` is the highest possible number.
        """
        reader = _Reader(self, table)
        yield from reader.all(upto, list(known))
        self.gaps += reader.merged_gaps()

    def between(self, table: str, first: int, last: int) -> list[Row]:
        """The rows with these numbers, as far as they can be read."""
        key = COLUMNS[table][0]
        question = f"SELECT {_as_stored(*COLUMNS[table])} FROM {table} NOT INDEXED WHERE {key} BETWEEN ? AND ?"  # noqa: S608 - our names
        return [_values(row) for row in self.collect(question, (first, last))[0]]

    def record(self, pos: int) -> Record | None:
        """The record at that position, if there is one that can be read."""
        rows = [row for row in self.between("entries", pos, pos) if fits("entries", row)]
        return Record(*rows[0][1:]) if rows else None

    def meta(self) -> dict[Any, Any]:
        """The store's description of itself, as far as it can be read."""
        return dict(self.keyed("meta", ("store", "format", "rewritten", "swept")).rows)

    def index(self, table: str) -> Scan:
        """The content of a table's index alone, from both ends towards the unreadable part."""
        name, columns, order = INDEXES[table]
        question = f"SELECT {_as_stored(*columns)} FROM {table} INDEXED BY {name} ORDER BY "  # noqa: S608 - our names
        return self._from_both_ends(question, order)

    def keyed(self, table: str, names: Iterable[str]) -> Scan:
        """The rows of a table that is kept by name: from both ends, and the rows of known names."""
        key = COLUMNS[table][0]
        question = f"SELECT {_as_stored(*COLUMNS[table])} FROM {table} "  # noqa: S608 - our names
        found = self._from_both_ends(f"{question} ORDER BY ", key)
        if found.whole:
            return found
        single = [row for name in names for row in self.collect(f"{question} WHERE {key} = ?", (name,))[0]]
        return Scan(list(dict.fromkeys([*found.rows, *map(_values, single)])), whole=False)

    def _from_both_ends(self, question: str, order: str) -> Scan:
        found, error = self.collect(question + order)
        if error is not None:
            found += self.collect(question + order.replace(",", " DESC,") + " DESC")[0]
        return Scan(list(dict.fromkeys(map(_values, found))), whole=error is None)

    def faults(self, table: str) -> list[str]:
        """What SQLite finds wrong with the structure of a table and its indexes."""
        found, error = self.collect(f"PRAGMA quick_check({table})")
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
        roots: dict[Any, Any] = dict(self.collect("SELECT name, rootpage FROM sqlite_schema")[0])
        faults = self.faults(table)
        trees = {int(tree.group(1)) for tree in map(_TREE_NAMED.search, faults) if tree is not None}
        # A fault without a tree follows from one with a tree. Alone, or if SQLite stopped counting, it may be in any
        # tree.
        in_any = len(faults) >= _FINDINGS if trees else bool(faults)
        return [name in roots and roots[name] not in trees and not in_any for name in (table, *names)]

    def collect(self, question: str, values: Sequence[Any] = ()) -> tuple[list[Row], Exception | None]:
        """Rows until there are no more (None) or the database fails (why)."""
        found: list[Row] = []
        try:
            for row in self.connection.execute(question, values):
                if len(found) > self.most_rows:
                    return found, ValueError(_CIRCLE)
                found.append(row)
        except _GARBAGE as error:
            return found, error
        return found, None


class _Reader:
    """The rows of one table that is kept by number. A row may be returned twice."""

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
        """Read a stretch from both ends; split the rest until single rows are known to be unreadable."""
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
                    return ValueError(_CIRCLE)
                row = _values(raw)
                if type(row[0]) is int and 0 < row[0] <= self._limit:  # a garbled number does not show the position
                    self._last = row[0]
                    self._numbers.add(row[0])
                yield row
        except _GARBAGE as error:
            return error
        return None


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
