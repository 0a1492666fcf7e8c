"""A structurally damaged database is built anew from everything that can still be read, beside the damaged one.

Records are copied byte for byte, with their positions; none is sealed again, repaired or invented. What cannot be read is
absent: its run then has a hole, and reading the run reports it. A run must never vanish, since it would silently start
again from nothing. So the names of all runs are gathered from every place that has them. A run of which only the name is
left keeps a head that fits no record. If the list of names cannot be shown to be whole, nothing is done at all.

**Putting it in place.** At every moment there is either the old database or the new one under the store's name:

1. The lock is SQLite's exclusive one, on the old file, for as long as this takes. It cannot be taken while any process has
   the store open, and a process that opens the store meanwhile waits. (A process that waited has the old file open. It
   compares the file's identity with that of the name before it uses it.)
2. The new database is complete, checked and synced under another name. A crash so far has changed nothing.
3. SQLite applies a log to *any* database of its name: left beside the new one, its old pages would be laid over it. Moving
   it away first would leave the old database without its newest records. So its bytes are kept as evidence, and then
   SQLite itself folds it into the old database and empties it. A crash in the middle of that is what logs are for.
   Afterwards the old database is complete without a log, and an empty log is harmless beside either database.
4. The old file gets a second name, as evidence. Then one rename puts the new one in its place.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import apsw
from msgspec import Struct, field
from msgspec.structs import astuple

from surefoot.core import parts
from surefoot.core.cure import ANY_RUN, Advice, Cures, command
from surefoot.core.entry import StoreAdopted
from surefoot.core.seal import GENESIS, Record, Sealer
from surefoot.errors import JournalCorrupt, StoreUnavailable
from surefoot.store import disk
from surefoot.store.anchor import Mark, foreign, mark_at
from surefoot.store.contract import RESERVED
from surefoot.store.liveness import Liveness, is_ours, listed
from surefoot.store.sqlite import files
from surefoot.store.sqlite import store as sqlite
from surefoot.store.sqlite.damaged_reader import (
    INDEXES,
    LOST_HEAD,
    SLACK,
    BadPage,
    Gap,
    Remains,
    Row,
    Scan,
    Undecodable,
    fits,
    is_name,
    is_number,
)
from surefoot.store.sqlite.files import anchor_path, connect, disconnect, explained, identity
from surefoot.store.sqlite.schema import APPLICATION_ID, COLUMNS

_RIVALS: Final = {"entries": "pos = ? OR (run = ? AND seq = ?)", "parts": "n = ? OR id = ?"}
"""By table: a row that claims the same as another one. The values are its first columns."""
_PLAIN: Final = {int, str, type(None)}
_CURES: Final = (
    Advice("a backup?", "put it back, together with its -wal file"),
    command("repair", ANY_RUN, accept_loss=True, when="none? Runs nobody can name are then as if they had never been:"),
)


class Salvaged(Struct):
    """What became of a damaged database. Filled in as the work goes on."""

    path: str
    evidence: tuple[str, ...] = ()
    """Where the damaged files are kept."""
    copied: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COLUMNS, 0))
    """Table -> rows that were taken over."""
    unread: tuple[Gap, ...] = ()
    pages: Sequence[BadPage] = ()
    misfits: int = 0
    """Rows that were read and are no records. Those that have any content are in quarantine."""
    doubts: list[str] = []
    """Why runs may have vanished. Empty: none can have, the list of names is provably whole."""
    headless: tuple[str, ...] = ()
    """Runs whose head could not be read: the length of their journal is not known."""
    missing: dict[str, int] = {}
    """Run -> entries that its head says it had and that could not be read."""

    @property
    def complete(self) -> bool:
        return not self.doubts

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


def rebuild(path: str, *, accept_incomplete: bool = False) -> Salvaged:
    """Put a sound database in the place of a damaged one. `StoreUnavailable` while anybody has the store open."""
    path = os.path.realpath(path)
    _refuse_if_used(path)
    with explained(path), _locked(path) as connection:
        work = _Work(path, Remains(connection), mark_at(anchor_path(path)))
        work.survey()
        work.refuse_unless_complete(accept_incomplete)
        new = path + "-salvage"
        try:
            work.build(new)
            work.refuse_unless_complete(accept_incomplete)  # the records may have told of more
            work.result.evidence = _put_in_place(path, new, connection)
        finally:
            disk.remove(new, *files.SIDES)
        return work.result


# --- the lock --------------------------------------------------------------------------------------


def _refuse_if_used(path: str) -> None:
    workers = path + "-workers"
    with explained(path):
        names = listed(workers)
    # Our own sign of life does not count: the handle that met the damage was given up. The lock finds any other handle.
    living = sum(Liveness(workers).alive(name) for name in names if not is_ours(name))
    if living:
        raise StoreUnavailable(
            f"{path}: the database is damaged and must be built anew, but {living} living process(es) have it open. "
            "End them (workers, runs, consoles), and try again."
        )


@contextlib.contextmanager
def _locked(path: str) -> Iterator[apsw.Connection]:
    """The damaged database, which no other process can use until this is over."""
    if not os.path.exists(path):
        raise files.no_store(path)
    before = identity(path)
    connection = connect(path, readonly=False)
    try:
        connection.execute("PRAGMA synchronous=FULL; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1").fetchall()
        # With exclusive locking SQLite keeps every lock until the connection is closed, and gets none while any other
        # connection, of any process, has read anything.
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
    except UnicodeDecodeError as error:
        raise _hopeless(path, str(error)) from error
    finally:
        disconnect(connection, checkpoint=False)


def _refuse_foreign(path: str, connection: apsw.Connection) -> None:
    """Refuse tables that we did not make. Without their description no row can be found."""
    try:
        number, schema = files.description(connection)
    except (apsw.NotADBError, apsw.CorruptError):
        raise
    except (apsw.Error, UnicodeDecodeError) as error:
        raise _hopeless(path, str(error)) from error
    if number != APPLICATION_ID and not schema.keys() & COLUMNS.keys():
        raise files.not_a_store(path, "it is a SQLite database of another program")
    if number != APPLICATION_ID or not files.is_ours(schema):
        raise _hopeless(path, "the description of the store's tables is not what was written")


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
        self.result = Salvaged(path)
        self._heads: dict[str, _Head] = {}
        self._named_whole = False
        self._places: dict[tuple[str, int], int] = {}
        self._rows_of_runs: dict[str, Row] = {}
        self._meta: dict[Any, Any] = {}
        self._store_id = b""
        self._misfits: set[Row] = set()

    # -- looking ----------------------------------------------------------------------------------

    def survey(self) -> None:
        """Read everything but the records: which runs there were, and whether that list is complete."""
        self.result.pages = self._remains.bad_pages()
        self._meta = self._remains.meta()
        files.refuse_newer(self._path, self._meta.get("format"))
        self._places = {
            (run, seq): pos
            for run, seq, pos in self._remains.index("entries").rows
            if is_name(run) and is_number(seq) and is_number(pos)
        }
        by_index = self._remains.index("heads")
        named = {run for run, _ in self._places} | {run for run, _ in by_index.rows if is_name(run)}
        rows = self._remains.keyed("runs", named).rows
        self._rows_of_runs = {row[0]: row for row in rows if is_name(row[0]) and set(map(type, row)) <= _PLAIN}
        elsewhere = {run for run, _ in self._places} | self._rows_of_runs.keys()
        self._gather_heads(by_index, elsewhere)
        self._store_id = self._find_store_id()
        self._judge_names(elsewhere)
        if self._mark is None:
            self.result.doubts.append("there is no anchor that says up to where the journal reached")
        elif not self._reaches(self._mark):
            self.result.doubts.append(
                f"nothing shows that record {self._mark.pos}, which the anchor knows, was ever in it"
            )

    def refuse_unless_complete(self, accept_incomplete: bool) -> None:
        if self.result.doubts and not accept_incomplete:
            raise _incomplete(self._path, self.result.doubts)

    def _judge_names(self, elsewhere: set[str]) -> None:
        """Note a doubt if there may be runs without a head. Then every name found anywhere is kept."""
        if not self._named_whole:
            self.result.doubts.append("neither the list of heads nor its index can be read whole")
            for run in sorted(elsewhere):
                self._heads.setdefault(run, _Head(run, None))
            return
        listed = [run for run, row in self._rows_of_runs.items() if sqlite.index_row(row) is not None]
        strangers = len(set(listed) - self._heads.keys())
        if strangers:
            self.result.doubts.append(f"{strangers} runs are in the list of runs but have no head")

    def _gather_heads(self, by_index: Scan, elsewhere: set[str]) -> None:
        """Heads by their rows and by their index. If the two name a row differently, a third place decides."""
        listed: dict[int, str] = {n: run for run, n in by_index.rows if is_name(run) and is_number(n)}
        before = len(self._remains.gaps)
        found: dict[int, _Head] = {}
        clean = True
        for row in self._remains.rows("heads", listed):
            if fits("heads", row):
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
        """The database and the anchor name different stores: the seals show which of them the records belong to."""
        for row in self._remains.rows("entries", self._places.values()):
            if fits("entries", row) and row[2] == 1:
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
        there = self._remains.record(mark.pos)
        if there is not None and there.seal == mark.seal:
            return True
        if there is not None and self._holds_here(there):
            return False  # a sound record, but another one: this is another history
        if any(head.seal == mark.seal for head in self._heads.values()):
            return True
        ends = {run: head.seq for run, head in self._heads.items()}
        return any(pos >= mark.pos and ends.get(run, 0) >= seq for (run, seq), pos in self._places.items())

    def _holds_here(self, record: Record) -> bool:
        place = self._places.get((record.run, record.seq - 1))
        before = self._remains.record(place) if place is not None else None
        return self._follows(record, before.seal if before is not None else None)

    def _follows(self, record: Record, previous: bytes | None) -> bool:
        """Whether the record's seal holds on the one before; None: that one is not there."""
        previous = GENESIS if record.seq == 1 else previous
        return previous is not None and Sealer(self._store_id, record.run).holds(record, previous)

    # -- building ---------------------------------------------------------------------------------

    def build(self, new: str) -> None:
        """Make the new database, complete and synced, under a name of its own."""
        _make_empty(new, self._path)
        files.fill(new, self._store_id)
        with files.alone(new) as connection:
            # This file is not used before it is whole, so it needs no protection of its own until then.
            connection.execute("PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF; BEGIN IMMEDIATE").fetchall()
            self._fill(connection)
            connection.execute("COMMIT")
            said = connection.execute("PRAGMA integrity_check").get
            if said != "ok":
                raise JournalCorrupt(
                    f"{self._path}: what was built anew is not sound itself ({said}); nothing changed."
                )
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
        disk.sync(new)

    def _fill(self, new: apsw.Connection) -> None:
        self._copy_quarantine(new)
        self._copy_entries(new)
        if not self.result.copied["entries"] and self._heads:
            self.result.doubts.append("not one record can be read")  # a backup is better than that
        self._copy_parts(new)
        self._set_aside(new)
        self._write_heads(new)
        for row in self._rows_of_runs.values():
            self._insert(new, "runs", row)
        self._keep_position(new)
        self.result.unread = tuple(dict.fromkeys(self._remains.gaps))
        self.result.misfits = len(self._misfits)
        self.result.headless = tuple(head.run for head in self._heads.values() if head.seal == LOST_HEAD)

    def _copy_entries(self, new: apsw.Connection) -> None:
        limit = max([self._mark.pos if self._mark else 0, *self._places.values()]) + SLACK
        known = self._places.values()
        for row in self._remains.rows("entries", known, upto=self._mark.pos if self._mark else 0):
            if fits("entries", row) and row[0] <= limit and self._belongs(new, row):
                self._copy(new, "entries", row)
            else:
                self._misfits.add(row)

    def _belongs(self, new: apsw.Connection, row: Row) -> bool:
        """Whether the row's run is a known one, or must be taken for one. A garbled name is no run."""
        run = row[1]
        if run in self._heads:
            return True
        if self._named_whole:
            if not self._holds(new, "entries", row):
                return False
            self.result.doubts.append(f"run {run!r} has records that hold, but no head")
        self._heads[run] = _Head(run, None)
        return True

    def _holds(self, new: apsw.Connection, table: str, row: Row) -> bool:
        if table == "parts":
            return not parts.fault(parts.Part(*row[1:]))
        before = new.execute("SELECT seal FROM entries WHERE run = ? AND seq = ?", (row[1], row[2] - 1)).fetchone()
        return self._follows(Record(*row[1:]), before[0] if before else None)

    def _copy(self, new: apsw.Connection, table: str, row: Row) -> None:
        """Where two rows claim one number, one name or one place in a run, the row that holds gets it."""
        try:
            self._insert(new, table, row)
        except apsw.ConstraintError:
            if table in _RIVALS:
                self._settle(new, table, row)

    def _settle(self, new: apsw.Connection, table: str, row: Row) -> None:
        question = f"SELECT {', '.join(COLUMNS[table])} FROM {table} WHERE {_RIVALS[table]}"  # noqa: S608 - our names
        there: list[Row] = new.execute(question, row[: question.count("?")]).fetchall()
        if row in there:
            return
        losers = [row]
        if self._holds(new, table, row) and not any(self._holds(new, table, other) for other in there):
            losers = there
            for other in there:
                new.execute(f"DELETE FROM {table} WHERE {COLUMNS[table][0]} = ?", other[:1])  # noqa: S608 - our names
                self.result.copied[table] -= 1
            self._insert(new, table, row)
        if table == "entries":
            self._misfits.update(losers)

    def _copy_parts(self, new: apsw.Connection) -> None:
        known = [n for _, n in self._remains.index("parts").rows if is_number(n)]
        for row in self._remains.rows("parts", known):
            if fits("parts", row):
                self._copy(new, "parts", row)

    def _copy_quarantine(self, new: apsw.Connection) -> None:
        for row in self._remains.rows("quarantine"):
            if is_number(row[0]) and any(value is not None for value in row[1:]):
                self._copy(new, "quarantine", row)

    def _set_aside(self, new: apsw.Connection) -> None:
        """Rows that are no records, as they are, for people who look at them later."""
        for row in sorted(self._misfits, key=repr):
            if any(value is not None for value in row[1:]):
                self._insert(new, "quarantine", (None, *row))

    def _write_heads(self, new: apsw.Connection) -> None:
        counted = files.pairs(new, "SELECT run, count(*) FROM entries GROUP BY run")
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
                self.result.missing[head.run] = head.seq - count
            self._insert(new, "heads", (head.n, head.run, head.seq, head.seal))

    def _replace_head(self, head: _Head, count: int) -> None:
        """A head that fits no journal. Without a head, the run could be created anew."""
        head.seq = 0  # less than any record has: how many there were is not known
        if not count:
            said = self._rows_of_runs.get(head.run, (0,) * 7)[6]
            placed = [seq for run, seq in self._places if run == head.run]
            head.seq = max([1, said if is_number(said) else 1, *placed])

    def _keep_position(self, new: apsw.Connection) -> None:
        """Positions never go back, and the anchor is still right."""
        noted = (self._meta.get(key) for key in ("swept", "rewritten"))
        swept, rewritten = (value if type(value) is int and value > 0 else 0 for value in noted)
        newest = new.execute("SELECT ifnull(max(pos), 0) FROM entries").get
        mark = self._mark
        if mark is not None and mark.pos and self._reaches(mark):
            found = new.execute("SELECT seal FROM entries WHERE pos = ?", (mark.pos,)).get
            rewritten = max(rewritten, 0 if found == mark.seal else mark.pos)
            if newest < mark.pos:
                self._note_loss(new, newest, mark.pos)
        new.execute("UPDATE meta SET value = ? WHERE key = 'rewritten'", (rewritten,))
        new.execute("UPDATE meta SET value = ? WHERE key = 'swept'", (swept,))

    def _note_loss(self, new: apsw.Connection, newest: int, expected: int) -> None:
        """The newest positions are lost: an entry of ours behind them says so, in a journal that is no run."""
        run = f"{RESERVED}salvaged/{expected}"
        short = tuple(sorted(name for name in self._heads if not name.startswith(RESERVED)))[:1000]
        entry = StoreAdopted("surefoot", "built anew from a damaged database", expected, newest, short)
        record, _ = Sealer(self._store_id, run).entry(entry, at=time.time_ns() // 1000)
        new.execute(sqlite._INSERT_AT, (expected + 1, *astuple(record)))
        new.execute("INSERT INTO heads (run, seq, seal) VALUES (?, 1, ?)", (run, record.seal))

    def _insert(self, new: apsw.Connection, table: str, row: Row) -> None:
        marks = ", ".join("?" * len(row))
        # A text that is not UTF-8 is kept as bytes: as text, it could not be read back.
        values = [value.data if isinstance(value, Undecodable) else value for value in row]
        new.execute(f"INSERT INTO {table} ({', '.join(COLUMNS[table])}) VALUES ({marks})", values)  # noqa: S608 - our names
        self.result.copied[table] += 1


def _agreed(row: _Head | None, name: str | None, n: int, known: set[str]) -> list[_Head]:
    """The run that head number `n` belongs to: what its row says, what the index says, or, in doubt, both."""
    if row is None or name is None or row.run == name:
        return [row] if row is not None else [_Head(str(name), n)]
    if name not in known:
        return [row] if row.run in known else [row, _Head(name, None)]
    renamed = _Head(name, n, row.seq, row.seal)
    return [row, _Head(name, None)] if row.run in known else [renamed]


# --- files ---------------------------------------------------------------------------------------------


def _make_empty(new: str, like: str) -> None:
    """An empty file with the owner and the mode of the old one. What an earlier attempt left is removed."""
    disk.remove(new, *files.SIDES)
    found = os.stat(like)
    fd = disk.create(new)
    with contextlib.suppress(PermissionError):
        os.fchown(fd, found.st_uid, found.st_gid)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))
    os.close(fd)


def _put_in_place(path: str, new: str, connection: apsw.Connection) -> tuple[str, ...]:
    """See the module's first lines for the order."""
    kept = _free_name(path)
    evidence: tuple[str, ...] = (kept,)
    log = path + "-wal"
    if disk.size(log):
        _keep_copy(log, kept + "-wal")
        evidence += (kept + "-wal",)
    _empty_log(path, connection)
    os.link(path, kept, follow_symlinks=False)
    disk.sync_name(path)
    os.rename(new, path)
    disk.sync_name(path)
    return evidence


def _free_name(path: str) -> str:
    """A name for the evidence that is not taken yet."""
    number = 0
    while True:
        number += 1
        name = f"{path}-damaged-{number}"
        if os.path.lexists(name) and os.path.samefile(name, path):
            os.unlink(name)  # an attempt died right before its last step: this is a second name of the store itself
        elif not os.path.lexists(name) and not os.path.lexists(name + "-wal"):
            return name


def _keep_copy(source: str, target: str) -> None:
    with open(source, "rb") as read, os.fdopen(disk.create(target), "wb") as write:
        shutil.copyfileobj(read, write)
        write.flush()
        os.fsync(write.fileno())


def _empty_log(path: str, connection: apsw.Connection) -> None:
    said = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if said[0][0] or disk.size(path + "-wal"):
        raise StoreUnavailable(f"{path}: the log could not be folded into the damaged database; nothing was replaced.")


# --- errors ----------------------------------------------------------------------------------------------


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
