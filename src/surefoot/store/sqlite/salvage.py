"""A structurally damaged database is built anew from everything that can still be read, beside the damaged one.

Records are copied byte for byte, with their positions; none is sealed again, mended or invented. What cannot be read is
absent: its run then has a hole, and whoever reads the run is told so. What must not happen is that a run vanishes, since
it would start afresh in silence. So the names of all runs are gathered from every place that has them, a run of which
only the name is left keeps a head that fits nothing, and if the list of names cannot be shown to be whole, nothing is
done at all.

**Putting it in place.** At every moment there is either the old database or the new one under the store's name:

1. The lock is SQLite's exclusive one, on the old file, for as long as this takes. It cannot be had while any process has
   the store open, and whoever opens it meanwhile waits. (Those who waited hold the old file; they compare its identity
   with that of the name before they use it.)
2. The new database is complete, checked and synced under another name. A crash so far has changed nothing.
3. A log is valid for *any* database of its name: left beside the new one, the old pages would be laid over it. To move
   it away first would leave the old database without its newest records. So its bytes are kept as evidence, and then
   SQLite itself folds it into the old database and empties it. A crash in the middle of that is what logs are for, and
   afterwards the old database is the same, alone; and an empty log is harmless beside either.
4. The old file gets its second name, as evidence; then one rename puts the new one in its place.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import apsw
from msgspec import Struct

from surefoot.core import parts
from surefoot.core.cure import ANY_RUN, NEWER_VERSION, Advice, Cures, command
from surefoot.core.entry import StoreAdopted
from surefoot.core.seal import GENESIS, Record, Sealer
from surefoot.errors import JournalCorrupt, SchemaMismatch, StoreUnavailable
from surefoot.store.anchor import Anchor, Mark, Unreadable, foreign
from surefoot.store.contract import RESERVED
from surefoot.store.liveness import Liveness, is_ours
from surefoot.store.sqlite import files
from surefoot.store.sqlite import store as sqlite
from surefoot.store.sqlite.damaged_reader import (
    COLUMNS,
    ENTRY,
    INDEXES,
    SLACK,
    BadPage,
    Gap,
    Remains,
    Row,
    Scan,
    Undecodable,
)
from surefoot.store.sqlite.files import APPLICATION_ID, FORMAT, anchor_path, connect, disconnect, explain, identity

LOST_HEAD: Final = bytes(32)
"""The seal of a head that could not be read. No record has it."""

_BIGGEST: Final = 2**63 - 1
_CURES: Final = (
    Advice("a backup?", "put it back, together with its -wal file"),
    command("repair", ANY_RUN, accept_loss=True, when="none? Runs nobody can name are then as if they had never been:"),
)


class Salvaged(Struct, frozen=True):
    """What became of a damaged database."""

    path: str
    evidence: tuple[str, ...]
    """Where the damaged files are kept."""
    copied: dict[str, int]
    """Table -> rows that were taken over."""
    unread: tuple[Gap, ...]
    pages: tuple[BadPage, ...]
    misfits: int
    """Rows that were read and are no records; those of them that have any content are in quarantine."""
    complete: bool
    """Whether no run can have vanished: the list of names is provably whole."""
    doubts: tuple[str, ...]
    """If it is not: why."""
    headless: tuple[str, ...]
    """Runs whose head could not be read: how long their journal was nobody can say."""
    hollow: tuple[str, ...]
    """Those of them of which nothing but the name is left."""
    missing: dict[str, int]
    """Run -> entries that its head says it had and that could not be read."""
    behind: int
    """By how many positions the new database ends before the anchor; it cannot be opened before it was adopted."""

    def summary(self) -> str:
        holes = _some(f"{run} ({count} entries)" for run, count in self.missing.items()) or "none"
        lost = f"; head lost: {_some(self.headless)}" if self.headless else ""
        unsure = "" if self.complete else f"; runs may have vanished: {'; '.join(self.doubts)}"
        return (
            f"{self.path}: the database was damaged and was built anew from what could be read "
            f"({self.copied['entries']} entries of {self.copied['heads']} journals); journals with holes: {holes}{lost}"
            f"{unsure}; the damaged files are kept: {', '.join(self.evidence)}"
        )


def _some(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:10]) + (f" and {len(found) - 10} more" if len(found) > 10 else "")


def rebuild(path: str, *, busy_seconds: float = 10.0, accept_incomplete: bool = False) -> Salvaged:
    """Put a sound database in the place of a damaged one. `StoreUnavailable` while anybody has the store open."""
    path = os.path.realpath(path)
    _refuse_if_used(path)
    with _explained(path, busy_seconds), _locked(path, busy_seconds) as connection:
        mark = _mark(path)
        work = _Work(path, Remains(connection), mark)
        work.survey()
        work.refuse_unless_complete(accept_incomplete)
        new = path + "-salvage"
        try:
            work.build(new)
            work.refuse_unless_complete(accept_incomplete)  # the records may have told of more
            evidence = _put_in_place(path, new, connection)
        finally:
            _remove(new)
        return work.result(evidence)


# --- the lock --------------------------------------------------------------------------------------


def _refuse_if_used(path: str) -> None:
    workers = path + "-workers"
    try:
        names = os.listdir(workers)
    except FileNotFoundError:
        return
    except OSError as error:
        raise explain(error, path) from error
    # Not our own sign of life: a handle that met the damage was given up, and the lock below finds any other.
    living = sum(Liveness(workers).alive(name) for name in names if not is_ours(name))
    if living:
        raise StoreUnavailable(
            f"{path}: the database is damaged and must be built anew, but {living} living process(es) have it open. "
            "End them (workers, runs, consoles), and try again."
        )


@contextlib.contextmanager
def _locked(path: str, busy_seconds: float) -> Iterator[apsw.Connection]:
    """The damaged database, to which nobody else has access until this is over."""
    if not os.path.exists(path):
        raise files._no_store(path)
    before = identity(path)
    connection = connect(path, readonly=False, busy_seconds=busy_seconds)
    try:
        connection.execute("PRAGMA synchronous=FULL; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1").fetchall()
        # With exclusive locking SQLite keeps every lock until the connection is closed, and gets none while another
        # connection, of whichever process, has so much as read.
        connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
        try:
            connection.execute("BEGIN IMMEDIATE; ROLLBACK")
        except apsw.BusyError as error:
            raise StoreUnavailable(
                f"{path}: the database is damaged and must be built anew, but another process has it open. "
                "End those that use it (workers, runs, consoles, sqlite3), and try again."
            ) from error
        if identity(path) != before:
            raise StoreUnavailable(f"{path}: the database was replaced at this very moment. Try again.")
        _refuse_foreign(path, connection)
        yield connection
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise _hopeless(path, str(error), files.anew(path, connection)) from error
    finally:
        disconnect(connection, checkpoint=False)


def _refuse_foreign(path: str, connection: apsw.Connection) -> None:
    """Whether the tables are those we made. Without their description nothing else can be found."""
    try:
        number = connection.execute("PRAGMA application_id").get
        schema = files._pairs(connection, "SELECT name, sql FROM sqlite_schema")
    except (apsw.NotADBError, apsw.CorruptError):
        raise
    except (apsw.Error, UnicodeDecodeError) as error:
        raise _hopeless(path, str(error)) from error
    if number != APPLICATION_ID and not schema.keys() & COLUMNS.keys():
        raise files._not_a_store(path, "it is a SQLite database of another program")
    if number != APPLICATION_ID or not files.is_ours(schema):
        raise _hopeless(path, "the description of the store's tables is not what was written")


def _mark(path: str) -> Mark | None:
    """What the anchor knows; None: there is none that can be read."""
    try:
        anchor = Anchor(anchor_path(path), create=False)
    except FileNotFoundError:
        return None
    try:
        return anchor.read()
    except Unreadable:
        return None
    finally:
        anchor.close()


# --- reading and building ----------------------------------------------------------------------------


class _Head(Struct):
    """A run by name, and its head as far as it was found."""

    run: str
    n: int | None
    seq: int = 0
    seal: bytes = LOST_HEAD


class _Work:
    """One rebuilding, from the first look to the result."""

    def __init__(self, path: str, remains: Remains, mark: Mark | None) -> None:
        self._path = path
        self._remains = remains
        self._mark = mark
        self.doubts: list[str] = []
        self._heads: dict[str, _Head] = {}
        self._named_whole = False
        self._places: dict[tuple[str, int], int] = {}
        self._rows_of_runs: dict[str, Row] = {}
        self._meta: dict[Any, Any] = {}
        self._store_id = b""
        self._misfits: set[Row] = set()
        self._copied = dict.fromkeys(COLUMNS, 0)
        self._missing: dict[str, int] = {}
        self._hollow: list[str] = []
        self._behind = 0
        self._pages: list[BadPage] = []

    # -- looking ----------------------------------------------------------------------------------

    def survey(self) -> None:
        """Everything but the records: who was here, and whether that is everybody."""
        self._pages = self._remains.bad_pages()
        self._meta = dict(self._remains.keyed("meta", ("store", "format", "rewritten", "swept")).rows)
        self._refuse_newer()
        places = self._remains.index("entries")
        self._places = {(run, seq): pos for run, seq, pos in places.rows if _is_place(run, seq, pos)}
        by_index = self._remains.index("heads")
        named = {run for run, _ in self._places} | {run for run, _ in by_index.rows if _is_name(run)}
        rows = self._remains.keyed("runs", named)
        self._rows_of_runs = {row[0]: row for row in rows.rows if _is_name(row[0]) and all(map(_is_plain, row))}
        elsewhere = {run for run, _ in self._places} | self._rows_of_runs.keys()
        self._gather_heads(by_index, elsewhere)
        self._store_id = self._find_store_id()
        self._judge_names(elsewhere)
        if self._mark is None:
            self.doubts.append("there is no anchor that says up to where the journal reached")
        elif not self._reaches(self._mark):
            self.doubts.append(f"nothing shows that record {self._mark.pos}, which the anchor knows, was ever in it")

    def refuse_unless_complete(self, accept_incomplete: bool) -> None:
        if self.doubts and not accept_incomplete:
            raise _incomplete(self._path, self.doubts)

    def _refuse_newer(self) -> None:
        found = self._meta.get("format")
        if type(found) is int and found > FORMAT:
            raise SchemaMismatch(
                f"{self._path}: this store has format {found}, this version of surefoot knows up to {FORMAT}.",
                cures=(NEWER_VERSION,),
            )

    def _judge_names(self, elsewhere: set[str]) -> None:
        """Whether the heads are those of all runs. If not, every name found anywhere is kept."""
        if not self._named_whole:
            self.doubts.append("neither the list of heads nor its index can be read whole")
            for run in sorted(elsewhere):
                self._heads.setdefault(run, _Head(run, None))
            return
        strangers = [run for run, row in self._rows_of_runs.items() if run not in self._heads and _row_holds(row)]
        if strangers:
            self.doubts.append(f"{len(strangers)} runs are in the list of runs but have no head")

    def _gather_heads(self, by_index: Scan, elsewhere: set[str]) -> None:
        """Heads by their rows and by their index. Where the two name a row differently, a third place decides."""
        listed: dict[int, str] = {n: run for run, n in by_index.rows if _is_name(run) and _is_number(n)}
        before = len(self._remains.gaps)
        found: dict[int, _Head] = {}
        clean = True
        for row in self._remains.rows("heads", listed):
            if _is_head(row):
                found.setdefault(row[0], _Head(row[1], row[0], row[2], row[3]))
            else:
                clean = False
        clean = clean and len(self._remains.gaps) == before
        table_sound, index_sound = self._remains.faultless_trees("heads", INDEXES["heads"][0])
        table_whole = clean and table_sound and listed.keys() <= found.keys()
        index_whole = by_index.whole and len(listed) == len(by_index.rows) and index_sound
        self._named_whole = table_whole or (index_whole and found.keys() <= listed.keys())
        for n in sorted(found.keys() | listed.keys()):
            for head in _agreed(found.get(n), listed.get(n), n, elsewhere):
                old = self._heads.get(head.run)
                if old is None or (old.seal == LOST_HEAD and head.seal != LOST_HEAD):
                    self._heads[head.run] = head

    def _find_store_id(self) -> bytes:
        said = self._meta.get("store")
        found = said if type(said) is bytes and len(said) == 16 else b""
        noted = self._mark.store if self._mark is not None else b""
        if not found and not noted:
            raise _hopeless(self._path, "neither the database nor the anchor tells the store's id")
        if found and noted and found != noted:
            return self._id_by_seals(found, noted)
        return noted or found

    def _id_by_seals(self, found: bytes, noted: bytes) -> bytes:
        """The database and the anchor name different stores: the records know to which they belong."""
        for row in self._remains.rows("entries", self._places.values()):
            if _is_entry(row, _BIGGEST) and row[2] == 1:
                record = Record(*row[1:])
                for name in (noted, found):
                    if Sealer(name, record.run).holds(record, GENESIS):
                        if name == found:
                            raise foreign(anchor_path(self._path))
                        return name
        raise _hopeless(self._path, "the database and the anchor name different stores")

    def _reaches(self, mark: Mark) -> bool:
        """Whether anything shows that the commit which the anchor noted is part of this database."""
        if not mark.pos:
            return True
        rewritten = self._meta.get("rewritten")
        if type(rewritten) is int and rewritten >= mark.pos:
            return True
        there = self._record_at(mark.pos)
        if there is not None and there.seal == mark.seal:
            return True
        if there is not None and self._holds_here(there):
            return False  # a record that is sound and is another one: this is another history
        if any(head.seal == mark.seal for head in self._heads.values()):
            return True
        ends = {run: head.seq for run, head in self._heads.items()}
        return any(pos >= mark.pos and ends.get(run, 0) >= seq for (run, seq), pos in self._places.items())

    def _record_at(self, pos: int) -> Record | None:
        found = [row for row in self._remains.between("entries", pos, pos) if _is_entry(row, _BIGGEST)]
        return Record(*found[0][1:]) if found else None

    def _holds_here(self, record: Record) -> bool:
        place = self._places.get((record.run, record.seq - 1))
        before = self._record_at(place) if place is not None else None
        previous = GENESIS if record.seq == 1 else before.seal if before is not None else None
        return previous is not None and Sealer(self._store_id, record.run).holds(record, previous)

    # -- building ---------------------------------------------------------------------------------

    def build(self, new: str) -> None:
        """The new database, complete and synced, under a name of its own."""
        _make_empty(new, self._path)
        files._fill(new, self._store_id)
        connection = apsw.Connection(new, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
        try:
            # Nobody relies on this file before it is whole: it needs no protection of its own until then.
            connection.execute("PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF; BEGIN IMMEDIATE").fetchall()
            self._fill(connection)
            connection.execute("COMMIT")
            said = connection.execute("PRAGMA integrity_check").get
            if said != "ok":
                raise JournalCorrupt(
                    f"{self._path}: what was built anew is not sound itself ({said}); nothing changed."
                )
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
        finally:
            connection.close(force=True)
        fd = os.open(new, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.fsync(fd)
        os.close(fd)

    def _fill(self, new: apsw.Connection) -> None:
        self._copy_quarantine(new)
        self._copy_entries(new)
        if not self._copied["entries"] and self._heads:
            self.doubts.append("not one record can be read")  # whoever has a backup is better off with that
        self._copy_parts(new)
        self._set_aside(new)
        self._write_heads(new)
        for row in self._rows_of_runs.values():
            self._insert(new, "runs", row)
        self._keep_position(new)

    def _copy_entries(self, new: apsw.Connection) -> None:
        limit = max([self._mark.pos if self._mark else 0, *self._places.values()]) + SLACK
        known = self._places.values()
        for row in self._remains.rows("entries", known, upto=self._mark.pos if self._mark else 0):
            if not _is_entry(row, limit) or not self._belongs(new, row):
                self._misfits.add(row)
                continue
            self._insert_or(new, "entries", row, self._rival_entry)

    def _belongs(self, new: apsw.Connection, row: Row) -> bool:
        """Whether the run is one we know, or must be believed to be one. A garbled name is no run."""
        run = row[1]
        if run in self._heads:
            return True
        if self._named_whole:
            if not self._holds(new, row):
                return False
            self.doubts.append(f"run {run!r} has records that hold, but no head")
        self._heads[run] = _Head(run, None)
        return True

    def _holds(self, new: apsw.Connection, row: Row) -> bool:
        before = new.execute("SELECT seal FROM entries WHERE run = ? AND seq = ?", (row[1], row[2] - 1)).fetchone()
        previous = GENESIS if row[2] == 1 else before[0] if before else None
        return previous is not None and Sealer(self._store_id, row[1]).holds(Record(*row[1:]), previous)

    def _rival_entry(self, new: apsw.Connection, row: Row) -> None:
        """A position, or a place in a run, that two rows claim: the one whose seal holds gets it."""
        question = f"SELECT {', '.join(ENTRY)} FROM entries WHERE pos = ? OR (run = ? AND seq = ?)"  # noqa: S608 - our names
        there = new.execute(question, row[:3]).fetchall()
        if row in there:
            return
        if not self._holds(new, row) or any(self._holds(new, other) for other in there):
            self._misfits.add(row)
            return
        for other in there:
            new.execute("DELETE FROM entries WHERE pos = ?", other[:1])
            self._copied["entries"] -= 1
            self._misfits.add(other)
        self._insert(new, "entries", row)

    def _copy_parts(self, new: apsw.Connection) -> None:
        known = [n for _, n in self._remains.index("parts").rows if _is_number(n)]
        for row in self._remains.rows("parts", known):
            if _is_part(row):
                self._insert_or(new, "parts", row, self._rival_part)

    def _rival_part(self, new: apsw.Connection, row: Row) -> None:
        question = "SELECT n, id, kind, codec, size, body FROM parts WHERE n = ? OR id = ?"
        there: list[Row] = new.execute(question, row[:2]).fetchall()
        if row in there or _fault(row) or not all(map(_fault, there)):
            return
        for other in there:
            new.execute("DELETE FROM parts WHERE n = ?", other[:1])
            self._copied["parts"] -= 1
        self._insert(new, "parts", row)

    def _copy_quarantine(self, new: apsw.Connection) -> None:
        for row in self._remains.rows("quarantine"):
            if _is_number(row[0]) and any(value is not None for value in row[1:]):
                self._insert_or(new, "quarantine", row, lambda _new, _row: None)

    def _set_aside(self, new: apsw.Connection) -> None:
        """Rows that are no records, as they are, for whoever wants to look."""
        for row in sorted(self._misfits, key=repr):
            if any(value is not None for value in row[1:]):
                self._insert(new, "quarantine", (None, *row))

    def _write_heads(self, new: apsw.Connection) -> None:
        counted = dict(_pairs(new, "SELECT run, count(*) FROM entries GROUP BY run"))
        numbers = {head.n for head in self._heads.values()}
        free = max((n for n in numbers if n is not None), default=0)
        for head in self._heads.values():
            if head.n is None:
                free += 1
                head.n = free
            count = counted.get(head.run, 0)
            if head.seal == LOST_HEAD:
                self._replace_head(head, count)
            elif head.seq > count:
                self._missing[head.run] = head.seq - count
            self._insert(new, "heads", (head.n, head.run, head.seq, head.seal))

    def _replace_head(self, head: _Head, count: int) -> None:
        """A head that no journal fits. Without any, the run could be created anew where its first entry was."""
        head.seq = 0  # less than any record has: how many there were is not known
        if not count:
            said = self._rows_of_runs.get(head.run, (0,) * 7)[6]
            placed = [seq for run, seq in self._places if run == head.run]
            head.seq = max([1, said if _is_number(said) else 1, *placed])
            self._hollow.append(head.run)

    def _keep_position(self, new: apsw.Connection) -> None:
        """Positions never go back, and the anchor is still right."""
        swept, rewritten = (_or_zero(self._meta.get(key)) for key in ("swept", "rewritten"))
        newest = new.execute("SELECT ifnull(max(pos), 0) FROM entries").get
        mark = self._mark
        if mark is not None and mark.pos and self._reaches(mark):
            found = new.execute("SELECT seal FROM entries WHERE pos = ?", (mark.pos,)).get
            rewritten = max(rewritten, 0 if found == mark.seal else mark.pos)
            if newest < mark.pos:
                self._note_loss(new, newest, mark.pos)
        elif mark is not None:
            self._behind = max(0, mark.pos - newest)
        new.execute("UPDATE meta SET value = ? WHERE key = 'rewritten'", (rewritten,))
        new.execute("UPDATE meta SET value = ? WHERE key = 'swept'", (swept,))
        self._copied["meta"] = len(self._meta.keys() & {"store", "format", "rewritten", "swept"})

    def _note_loss(self, new: apsw.Connection, newest: int, expected: int) -> None:
        """The newest positions are lost: an entry of our own, in a journal that is no run, says so behind them."""
        run = f"{RESERVED}salvaged/{expected}"
        short = tuple(sorted(name for name in self._heads if not name.startswith(RESERVED)))[:1000]
        entry = StoreAdopted("surefoot", "built anew from a damaged database", expected, newest, short)
        record, _ = Sealer(self._store_id, run).entry(entry, at=time.time_ns() // 1000)
        new.execute(sqlite._INSERT_AT, (expected + 1, *sqlite._entry_values(record)))
        new.execute("INSERT INTO heads (run, seq, seal) VALUES (?, 1, ?)", (run, record.seal))

    def _insert(self, new: apsw.Connection, table: str, row: Row) -> None:
        marks = ", ".join("?" * len(row))
        # Bytes of a text that is none are kept as bytes: as text, nobody could read them back.
        values = [bytes(value) if isinstance(value, Undecodable) else value for value in row]
        new.execute(f"INSERT INTO {table} ({', '.join(COLUMNS[table])}) VALUES ({marks})", values)  # noqa: S608 - our names
        self._copied[table] += 1

    def _insert_or(
        self, new: apsw.Connection, table: str, row: Row, otherwise: Callable[[apsw.Connection, Row], None]
    ) -> None:
        try:
            self._insert(new, table, row)
        except apsw.ConstraintError:
            otherwise(new, row)

    def result(self, evidence: list[str]) -> Salvaged:
        return Salvaged(
            path=self._path,
            evidence=tuple(evidence),
            copied=self._copied,
            unread=tuple(dict.fromkeys(self._remains.gaps)),
            pages=tuple(self._pages),
            misfits=len(self._misfits),
            complete=not self.doubts,
            doubts=tuple(self.doubts),
            headless=tuple(head.run for head in self._heads.values() if head.seal == LOST_HEAD),
            hollow=tuple(self._hollow),
            missing=self._missing,
            behind=self._behind,
        )


def _agreed(row: _Head | None, name: str | None, n: int, known: set[str]) -> list[_Head]:
    """Which run the head number `n` belongs to: what its row says, what the index says, or, in doubt, both."""
    if row is None or name is None or row.run == name:
        return [row] if row is not None else [_Head(str(name), n)]
    if name not in known:
        return [row] if row.run in known else [row, _Head(name, None)]
    renamed = _Head(name, n, row.seq, row.seal)
    return [row, _Head(name, None)] if row.run in known else [renamed]


# --- what is a row of ours -----------------------------------------------------------------------------


def _is_number(value: object) -> bool:
    return type(value) is int and 0 < value <= _BIGGEST


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _BIGGEST


def _or_zero(value: Any) -> int:
    return int(value) if _is_number(value) else 0


def _is_name(value: object) -> bool:
    return type(value) is str and bool(value)


def _is_place(run: object, seq: object, pos: object) -> bool:
    return _is_name(run) and _is_number(seq) and _is_number(pos)


def _is_seal(value: object) -> bool:
    return type(value) is bytes and len(value) == len(LOST_HEAD)


def _is_head(row: Row) -> bool:
    n, run, seq, seal = row
    return _is_number(n) and _is_name(run) and _is_count(seq) and _is_seal(seal)


def _is_entry(row: Row, limit: int) -> bool:
    pos, run, seq, *header, body, seal = row
    return (
        _is_place(run, seq, pos)
        and pos <= limit
        and all(_is_count(number) for number in header)
        and type(body) is bytes
        and _is_seal(seal)
    )


def _is_part(row: Row) -> bool:
    n, name, *numbers, body = row
    return _is_number(n) and type(name) is bytes and all(type(x) is int for x in numbers) and type(body) is bytes


def _fault(row: Row) -> str:
    return parts.fault(parts.Part(*row[1:]))


def _is_plain(value: object) -> bool:
    return value is None or type(value) in (int, str)


def _row_holds(row: Row) -> bool:
    return sqlite._index_row(row) is not None


def _pairs(connection: apsw.Connection, question: str) -> dict[Any, Any]:
    return files._pairs(connection, question)


# --- files ---------------------------------------------------------------------------------------------


def _make_empty(new: str, like: str) -> None:
    """An empty file with the owner and the mode of the old one; whatever an attempt that died left goes."""
    _remove(new)
    found = os.stat(like)
    fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(PermissionError):
        os.fchown(fd, found.st_uid, found.st_gid)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))
    os.close(fd)


def _remove(new: str) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new + suffix)


def _put_in_place(path: str, new: str, connection: apsw.Connection) -> list[str]:
    """See the module's first lines for the order."""
    kept = _free_name(path)
    evidence = [kept]
    log = path + "-wal"
    if os.path.exists(log) and os.path.getsize(log):
        _keep_copy(log, kept + "-wal")
        evidence.append(kept + "-wal")
    _empty_log(path, connection)
    os.link(path, kept, follow_symlinks=False)
    files._sync_folder(path)
    os.rename(new, path)
    files._sync_folder(path)
    return evidence


def _free_name(path: str) -> str:
    """A name for the evidence that nothing has yet."""
    number = 0
    while True:
        number += 1
        name = f"{path}-damaged-{number}"
        if os.path.lexists(name) and os.path.samefile(name, path):
            os.unlink(name)  # an attempt died right before its last step: this is no evidence but the store itself
        elif not os.path.lexists(name) and not os.path.lexists(name + "-wal"):
            return name


def _keep_copy(source: str, target: str) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(source, "rb") as read, os.fdopen(fd, "wb") as write:
        shutil.copyfileobj(read, write)
        write.flush()
        os.fsync(write.fileno())


def _empty_log(path: str, connection: apsw.Connection) -> None:
    said = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    log = path + "-wal"
    if said[0][0] or (os.path.exists(log) and os.path.getsize(log)):
        raise StoreUnavailable(f"{path}: the log could not be folded into the damaged database; nothing was replaced.")


# --- errors ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _explained(path: str, busy_seconds: float) -> Iterator[None]:
    try:
        yield
    except (apsw.NotADBError, apsw.CorruptError, UnicodeDecodeError) as error:
        raise _hopeless(path, str(error)) from error
    except (apsw.Error, OSError) as error:
        raise explain(error, path, busy_seconds=busy_seconds) from error


def _hopeless(path: str, why: str, more: Cures = ()) -> JournalCorrupt:
    return JournalCorrupt(
        f"{path}: the database is damaged beyond what can be built anew: {why}. Nothing was changed.",
        facts={"structure": True},
        cures=(_CURES[0], command("inspect", path=path, when="look"), *more),
    )


def _incomplete(path: str, doubts: list[str]) -> JournalCorrupt:
    return JournalCorrupt(
        f"{path}: the database is damaged in such a way that runs may have vanished ({'; '.join(doubts)}). Built anew, "
        "they might silently start afresh. Nothing was changed.",
        facts={"structure": True},
        cures=(*_CURES, command("inspect", path=path, when="look")),
    )
