"""Journals in one SQLite file: acknowledged records are on disk, and records from disk are checked before use.

There is one writing and one read-only connection, each with its own lock (`apsw` allows one thread at a time), so that
reading does not wait for a commit. An append moves the run's head and inserts its records in one transaction. The head's
old value is the condition, so a writer that lost a race changes nothing.

After an I/O error or a failed commit a handle is given up: SQLite would accept later commits as if nothing had happened.
To go on, open the store again, which reads what is on disk.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Never, TypeVar, cast

import apsw
import msgspec
from msgspec.structs import astuple

from surefoot.core.cure import Advice
from surefoot.core.parts import Cut, Part
from surefoot.core.seal import Record
from surefoot.core.state import DONE
from surefoot.errors import JournalCorrupt, JournalRegressed, StoreNotDurable, SurefootError, UsageError
from surefoot.store.anchor import Mark
from surefoot.store.backend import Announce
from surefoot.store.contract import (
    ANY,
    Conflict,
    Extend,
    Head,
    IndexRow,
    Listed,
    Reserved,
    Rewrite,
    RunQuery,
    Serving,
    Stored,
    Wanted,
    WorkerSeen,
)
from surefoot.store.derived import Derived
from surefoot.store.liveness import Liveness
from surefoot.store.pages import NEWEST, Placed, collect, listed
from surefoot.store.rows import FIELDS, from_values, to_values
from surefoot.store.rules import between, check_positions
from surefoot.store.sound import Sound
from surefoot.store.sqlite import guard, lanes
from surefoot.store.sqlite.files import (
    DURABLE,
    STRUCTURE,
    Opened,
    anchor_path,
    connect,
    damaged,
    disconnect,
    explain,
    explained,
    identity,
    open_files,
    restore,
    snapshot,
)
from surefoot.store.sqlite.schema import COLUMNS, ENTRY, SAID

CHECKPOINT_PAGES: Final = 250
LISTEN_SECONDS: Final = 0.025
"""How often a listener checks whether another process has written. A ready run waits at most that long."""

_ROWS_PER_STATEMENT: Final = 50
"""Every statement may cost a switch of the interpreter's lock, so many rows share one."""
_ROWS_PER_LOOK: Final = 512

_BEGIN: Final = "BEGIN IMMEDIATE"
_COMMIT: Final = "COMMIT"
_NEW_HEAD: Final = "INSERT INTO heads (run, seq, seal) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_MOVE_HEAD: Final = "UPDATE heads SET seq = ?, seal = ? WHERE run = ? AND seq = ? AND seal = ?"
_MOVE_HEADS: Final = "WITH new (run, seq, seal, to_seq, to_seal) AS (VALUES "
_MOVE_HEADS_END: Final = (
    ") UPDATE heads SET seq = new.to_seq, seal = new.to_seal FROM new "
    "WHERE heads.run = new.run AND heads.seq = new.seq AND heads.seal = new.seal"
)
_PLACED: Final = ", ".join(ENTRY)
_INSERT: Final = f"INSERT INTO entries ({', '.join(ENTRY[1:])}) VALUES "  # noqa: S608 - our own names
_ENTRY: Final = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_ONE: Final = _INSERT + _ENTRY
# Writing a row ends its reservation: `held` is not named, and a row that is replaced does not keep it.
_INDEX: Final = f"INSERT OR REPLACE INTO runs ({', '.join(COLUMNS['runs'])}) VALUES "  # noqa: S608 - our own names
_INDEX_ROW: Final = f"({'?, ' * (len(COLUMNS['runs']) - 1)}(SELECT n FROM heads WHERE run = ?))"  # noqa: S608 - our own names
_LABEL: Final = "INSERT OR IGNORE INTO run_labels (name, value, n, run) SELECT ?, ?, n, run FROM heads WHERE run = ?"
_RECORDS: Final = f"SELECT {', '.join(ENTRY[2:])} FROM entries WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?"  # noqa: S608 - our own names
_HEAD: Final = "SELECT seq, seal FROM heads WHERE run = ?"
_NAMES: Final = "SELECT run FROM heads UNION SELECT run FROM entries"
_NAMES_FROM: Final = (
    "SELECT run FROM heads WHERE run >= ? AND run < ? UNION SELECT run FROM entries WHERE run >= ? AND run < ?"
)
# A head is found by its run's name in the index, and listed by its row in the table. If one flipped bit makes the two
# disagree, a run would be listed under another name, or not at all: `same` and the two counts detect that.
_ROW: Final = ", ".join(f"r.{column}" for column in COLUMNS["runs"][1:-1])
_LIST: Final = (
    "SELECT h.n, h.run, same.n, " + _ROW + " FROM heads h LEFT JOIN heads same ON same.run = h.run "  # noqa: S608 - our own names
    "LEFT JOIN runs r ON r.run = h.run WHERE h.n < ? ORDER BY h.n DESC LIMIT ?"
)
_LIST_BARE: Final = (
    "SELECT h.n, h.run, same.n FROM heads h LEFT JOIN heads same ON same.run = h.run "
    "WHERE h.n < ? ORDER BY h.n DESC LIMIT ?"
)
_FIND: Final = "SELECT r.n, r.run, h.n, " + _ROW + " FROM runs r LEFT JOIN heads h ON h.run = r.run WHERE "  # noqa: S608 - our own names
_CLAIMED: Final = _FIND + "r.worker > '' AND +r.n < ? ORDER BY r.n DESC LIMIT ?"
"""Sorted, but only those that some process drives at the moment."""
_LABELLED: Final = (
    "SELECT l.n, l.run, h.n, " + _ROW + " FROM run_labels l JOIN runs r ON r.run = l.run "  # noqa: S608 - our own names
    "LEFT JOIN heads h ON h.run = l.run "
    "WHERE l.name = ? AND l.value = ? AND l.n < ? ORDER BY l.n DESC LIMIT ?"
)
_PLACE: Final = "SELECT n FROM heads WHERE run = ?"
_COUNTS: Final = (
    "SELECT (SELECT count(*) FROM heads NOT INDEXED WHERE seq IS NOT NULL), "
    "(SELECT count(*) FROM heads INDEXED BY sqlite_autoindex_heads_1 WHERE run IS NOT NULL)"
)
# Whether the runs with a head are the runs with a row, name by name: two walks in the order of their indexes, no look-ups.
# Indexes that are out of order also make a difference: then each name is looked up.
_BOTH: Final = (
    "SELECT (SELECT group_concat(run, char(31)) FROM heads INDEXED BY sqlite_autoindex_heads_1 "
    "WHERE +run < char(31) OR +run >= char(32)) "
    "IS (SELECT group_concat(run, char(31)) FROM runs INDEXED BY sqlite_autoindex_runs_1)"
)
_ROWLESS: Final = (
    "SELECT h.n, h.run FROM heads h WHERE (h.run < char(31) OR h.run >= char(32)) "
    "AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run = h.run) ORDER BY h.n DESC"
)
# A run that lost its head would silently be missing in the list. Both the cached row and the entries must name it: a row
# alone may be one whose name is damaged.
_HEADLESS: Final = (
    "SELECT 1 FROM runs r WHERE NOT EXISTS (SELECT 1 FROM heads h WHERE h.run = r.run) "
    "AND EXISTS (SELECT 1 FROM entries e WHERE e.run = r.run) LIMIT 1"
)
_TALLY: Final = "SELECT status, ifnull(reason, ''), count(*) FROM runs GROUP BY 1, 2"

# A part is found by its name in the index, and taken from the row that the index points to. If one flipped bit makes it
# point to another row, no part is damaged: writing it anew would destroy the other part.
_PARTS: Final = (
    "SELECT named.id, p.id, p.kind, p.codec, p.size, p.body FROM parts named LEFT JOIN parts p ON p.n = named.n "
    "WHERE named.id IN ("
)
_STRAY_PARTS: Final = (
    "SELECT 1 FROM parts named LEFT JOIN parts p ON p.n = named.n WHERE p.id IS NOT named.id AND named.id IN ("
)
_SCAN_PARTS: Final = "SELECT n, id, kind, codec, size, body FROM parts WHERE n > ? ORDER BY n LIMIT ?"
_INSERT_PARTS: Final = f"INSERT INTO parts ({', '.join(COLUMNS['parts'][1:])}) VALUES "  # noqa: S608 - our own names
_HEAL_PARTS: Final = " ON CONFLICT (id) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in COLUMNS["parts"][1:]
)
_QUARANTINED: Final = f"SELECT {', '.join(ENTRY[2:])} FROM quarantine WHERE run = ? ORDER BY n"  # noqa: S608 - our own names
_SCAN: Final = f"SELECT {_PLACED} FROM entries WHERE pos > ? ORDER BY pos LIMIT ?"  # noqa: S608 - our own names
_SAID: Final = f"SELECT {_PLACED} FROM entries WHERE {SAID} AND pos < ? ORDER BY pos DESC LIMIT ?"  # noqa: S608 - our own names
_ARCHIVE: Final = (
    f"INSERT INTO quarantine ({_PLACED}) SELECT {_PLACED} FROM entries WHERE run = ? AND seq > ? ORDER BY seq"  # noqa: S608 - our own names
)
_ARCHIVE_ONE: Final = f"INSERT INTO quarantine ({_PLACED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own names
_INSERT_AT: Final = f"INSERT INTO entries ({_PLACED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own names
_SET_HEAD: Final = (
    "INSERT INTO heads (run, seq, seal) VALUES (?, ?, ?) ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, "
    "seal = excluded.seal"
)

_CHECKSUM: Final = COLUMNS["runs"].index("checksum")
_EVERYTHING: Final = RunQuery(limit=2**62)
_POISONOUS: Final = (apsw.IOError, apsw.CorruptError, apsw.NotADBError, apsw.CantOpenError, apsw.ReadOnlyError)
_RECORD_ROWS: Final = list[tuple[int, int, int, int, int, int, int, bytes, bytes]]
_SCAN_ROWS: Final = list[tuple[int, str, int, int, int, int, int, int, int, bytes, bytes]]
_HEAD_ROWS: Final = list[tuple[int, bytes]]

T = TypeVar("T")


class SqliteStore(Derived):
    """See the module's first lines, and `contract.Store` for what each verb promises."""

    def __init__(self, url: str, files: Opened) -> None:
        """Use `open`."""
        self.id = files.store_id
        self.url = url
        self.path = self.where = files.path
        self._identity = files.identity
        self._anchor = files.anchor
        self._reader = files.reader
        self._writer: apsw.Connection | None = None
        self._execute: Callable[..., Any] = _no_writer_yet
        self._changes: Callable[[], int] = _no_writer_yet
        self._last_position: Callable[[], int] = _no_writer_yet
        self._liveness = Liveness(files.path + "-workers")
        self._stirred = threading.Event()
        self._heard = 0
        self._list_checked = False
        self._compared_at = -1
        self._agree = False
        self._parts_checked = False
        self._sound = Sound()
        self._writing = threading.RLock()  # taken before `_reading` where both are needed
        self._reading = threading.Lock()

    @classmethod
    def open(
        cls, path: str, *, create: bool, url: str, announce: Announce | None = None, adopting: bool = False
    ) -> SqliteStore:
        """Open the store at this path, checked against its anchor; with `create`, make it if there is none.

        With `adopting`, also a store that is older than its anchor: only for `rewrite_together`, which makes it
        whole again.
        """
        files = open_files(os.path.realpath(path), create=create, announce=announce, adopting=adopting)
        store = cls(url, files)
        store._note_open()
        if create:
            try:
                store._open_writer()
            except BaseException:
                store.abandon()  # No caller has this handle: repeated tries would use up all descriptors.
                raise
        return store

    @property
    def expected(self) -> int | None:
        """The last record that the store is known to have reached."""
        return self._anchor.newest.pos if self._anchor.newest is not None else None

    @property
    def file(self) -> str:
        return self.path

    def flaws(self) -> list[str]:
        from surefoot.store.sqlite import probe  # only now: it imports half of the standard library

        return probe.structure(self.path)

    def anchor_flaw(self) -> str:
        from surefoot.store.sqlite import probe

        return probe.anchor_fault(self)

    @property
    def worker(self) -> str:
        self._refuse_unless_usable()
        return self._liveness.join()

    def alive(self, worker: str) -> bool:
        self._refuse_unless_usable()
        return self._liveness.alive(worker)

    # --- workers ---------------------------------------------------------------------------------------

    def serve(self, serving: Serving | None) -> None:
        self._refuse_unless_usable()
        self._liveness.serve(serving)

    def workers(self) -> list[WorkerSeen]:
        self._refuse_unless_usable()
        return [
            WorkerSeen(name, card.host, card.pid, card.since, None, card.serving)
            for name, card in self._liveness.living()
        ]

    def reserve(self, wanted: Wanted) -> Reserved:
        self._refuse_unless_usable()
        # Before the transaction: an unreadable worker's file must not end the handle.
        gone = [name for (name,) in self._ask(lanes.WORKERS, ()) if name != wanted.worker and not self.alive(name)]
        found = lanes.find(self._ask, wanted, gone)
        if found.chosen:
            found = self._commit(lambda: (lanes.take(self._ask_writing, wanted, gone), None, []))
        return Reserved([one.run for one in found.chosen], found.next_wake)

    def listen(self, seconds: float) -> None:
        """For one thread at a time. Returns at once if anything was written since the last call returned."""
        until = time.monotonic() + seconds
        while self._written() == self._heard and (left := until - time.monotonic()) > 0:
            if self._stirred.wait(min(left, LISTEN_SECONDS)):
                break
        self._stirred.clear()
        self._heard = self._written()

    def nudge(self) -> None:
        self._refuse_unless_usable()
        self._stirred.set()

    def tally(self) -> dict[tuple[str, str], int]:
        rows = self._ask(_TALLY, ())
        return {(status, reason): count for status, reason, count in rows}

    def _written(self) -> int:
        """Changes when any connection but the reading one commits anything, even only a row of the index."""
        ((version,),) = self._ask("PRAGMA data_version", ())
        return int(version)

    def _ask(self, question: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._look((question, values))[0]

    def _ask_writing(self, question: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return cast("list[tuple[Any, ...]]", self._execute(question, values).fetchall())

    # --- appending ---------------------------------------------------------------------------------

    def append(self, batch: Sequence[Extend]) -> list[Conflict | None]:
        check_positions(batch)
        if not batch:
            self._refuse_unless_usable()
            return []
        answers = self._commit(lambda: self._write_batch(batch))
        if any(item.row is not None and item.row.wake is not None for item in batch):
            self._stirred.set()
        return answers

    def rewrite_together(self, items: Sequence[Rewrite], *, beyond: int = 0) -> bool:
        check_positions(items)
        return self._commit(lambda: self._rewrite_all(items, beyond))

    def _rewrite_all(self, items: Sequence[Rewrite], beyond: int) -> tuple[bool, Mark | None, list[Cut]]:
        if any(item.archive for item in items):
            # The database is damaged. Records are found by the index and deleted from the table: the two have to agree
            # first.
            self._execute("REINDEX entries")
        newest = None
        for item in items:
            newest = self._rewrite(item, after=beyond if newest is None else newest.pos)
            if newest is None:
                self._execute("ROLLBACK")
                self._execute(_BEGIN)
                return False, None, []
        return True, newest, [cut for item in items for cut in item.cuts]

    def _commit(self, write: Callable[[], tuple[T, Mark | None, list[Cut]]]) -> T:
        """One durable transaction around `write`, which returns its answer, the newest record, and the values to keep."""
        self._refuse_unless_usable()
        with self._writing:
            self._refuse_unless_usable()
            self._refuse_if_replaced()
            if self._writer is None:
                self._open_writer()
            return self._transact(write)

    def _transact(self, write: Callable[[], tuple[T, Mark | None, list[Cut]]]) -> T:
        committing = False
        try:
            self._execute(_BEGIN)
            answer, newest, cuts = write()
            if cuts:
                self._write_parts(cuts)
            if newest is not None:
                self._refuse_if_regressed(newest)
            self._refuse_if_replaced()  # again: a rebuilt store takes the place of the old one under this very lock
            committing = True
            self._execute(_COMMIT)
            if newest is not None:
                self._note(newest)
            if cuts:
                self._sound.note(cuts)
        except BaseException as error:
            self._clean_up(error, committing=committing)
            raise
        return answer

    def _write_batch(self, batch: Sequence[Extend]) -> tuple[list[Conflict | None], Mark | None, list[Cut]]:
        """All at once if every run is as expected (nearly always); else one by one."""
        try:
            newest = self._write(batch[0]) if len(batch) == 1 else self._write_all(batch)
            answers: list[Conflict | None] = [None] * len(batch)
        except _Refused:
            self._execute("ROLLBACK")
            self._execute(_BEGIN)
            answers, newest = self._write_each(batch)
        cuts = [cut for item, answer in zip(batch, answers, strict=True) if answer is None for cut in item.cuts]
        return answers, newest, cuts

    def _write(self, item: Extend) -> Mark | None:
        """Head, records, index row of one run. `_Refused` if the head differs."""
        execute = self._execute
        head, records = item.head, item.records
        if head is None:
            execute(_NEW_HEAD, (item.run, records[-1].seq, records[-1].seal))
        else:
            last = records[-1] if records else head
            execute(_MOVE_HEAD, (last.seq, last.seal, item.run, head.seq, head.seal))
        if self._changes() != 1:
            raise _Refused
        newest = self._insert(records) if records else None
        if item.row is not None:
            self._write_rows([item.row])
        return newest

    def _insert(self, records: Sequence[Record]) -> Mark:
        """The records, in this order. The mark of the last."""
        try:
            if len(records) == 1:
                self._execute(_INSERT_ONE, astuple(records[0]))
            else:
                self._in_chunks(_INSERT, _ENTRY, [astuple(record) for record in records])
        except apsw.ConstraintError:
            # There is a record after the head. The reader of the run will report that. This writer gets a conflict.
            raise _Refused from None
        return Mark(self.id, self._last_position(), records[-1].seal)

    def _write_all(self, batch: Sequence[Extend]) -> Mark:
        if len({item.run for item in batch}) != len(batch) or not all(item.records for item in batch):
            raise _Refused
        last = [(item, item.records[-1]) for item in batch]
        fresh = [(item.run, end.seq, end.seal) for item, end in last if item.head is None]
        moved = [
            (item.run, item.head.seq, item.head.seal, end.seq, end.seal) for item, end in last if item.head is not None
        ]
        self._in_chunks("INSERT INTO heads (run, seq, seal) VALUES ", "(?, ?, ?)", fresh, " ON CONFLICT DO NOTHING")
        self._in_chunks(_MOVE_HEADS, "(?, ?, ?, ?, ?)", moved, _MOVE_HEADS_END)
        newest = self._insert([record for item in batch for record in item.records])
        self._write_rows([item.row for item in batch if item.row is not None])
        return newest

    def _write_rows(self, rows: Sequence[IndexRow]) -> None:
        self._in_chunks(_INDEX, _INDEX_ROW, [_index_values(row) for row in rows])
        for row in rows:
            for name, value in row.labels.items():
                self._execute(_LABEL, (name, value, row.run))

    def _write_each(self, batch: Sequence[Extend]) -> tuple[list[Conflict | None], Mark | None]:
        answers: list[Conflict | None] = []
        newest = None
        for item in batch:
            self._execute("SAVEPOINT one_run")
            try:
                newest = self._write(item) or newest
                answers.append(None)
            except _Refused:
                self._execute("ROLLBACK TO one_run")
                answers.append(Conflict(item.run))
            self._execute("RELEASE one_run")
        return answers, newest

    def _in_chunks(self, start: str, row: str, rows: Sequence[tuple[Any, ...]], end: str = "") -> None:
        """Write rows, many per statement. `_Refused` unless each of them was written."""
        for at in range(0, len(rows), _ROWS_PER_STATEMENT):
            chunk = rows[at : at + _ROWS_PER_STATEMENT]
            self._execute(_statement(start, row, len(chunk), end), [value for values in chunk for value in values])
            if self._changes() != len(chunk):
                raise _Refused

    def _rewrite(self, item: Rewrite, *, after: int) -> Mark | None:
        """Write after that position of the store, or further. None: the journal is not as it was found."""
        execute = self._execute
        heads = execute(_HEAD, (item.run,)).fetchall()
        if (Head(*heads[0]) if heads else None) != item.found:
            return None
        ((newest,),) = execute("SELECT max(pos) FROM entries").fetchall()
        known = self._anchor.newest
        pos = max(newest or 0, known.pos if known is not None else 0, after)
        if item.forget:
            execute("DELETE FROM quarantine WHERE run = ?", (item.run,))
        if item.archive:
            execute(_ARCHIVE, (item.run, item.keep))
        execute("DELETE FROM entries WHERE run = ? AND seq > ?", (item.run, item.keep))
        execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('rewritten', ?)", (pos,))
        for record in item.records:
            pos += 1
            execute(_INSERT_AT, (pos, *astuple(record)))
            if item.archive and record is item.records[0]:
                execute(_ARCHIVE_ONE, (pos, *astuple(record)))
        last = item.records[-1]
        execute(_SET_HEAD, (item.run, last.seq, last.seal))
        if item.row is not None:
            self._write_rows([item.row])
        return Mark(self.id, pos, last.seal)

    def _write_parts(self, cuts: Sequence[Cut]) -> None:
        """Write the missing parts of these values."""
        ((swept,),) = self._execute("SELECT value FROM meta WHERE key = 'swept'").fetchall() or [(None,)]
        self._sound.under(swept)
        wanted = {part.id: part for part in self._sound.lacking(cuts, self._fetch_writing)}
        self._in_chunks(_INSERT_PARTS, "(?, ?, ?, ?, ?)", [astuple(part) for part in wanted.values()], _HEAL_PARTS)

    def _fetch_writing(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        questions = _part_questions(ids)
        return self._parts_of(row for sql, chunk in questions for row in self._execute(sql, chunk).fetchall())

    def discard(self, parts: Sequence[bytes], upto: int) -> bool:
        return self._commit(lambda: self._discard(parts, upto))

    def _discard(self, parts: Sequence[bytes], upto: int) -> tuple[bool, Mark | None, list[Cut]]:
        ((newest,),) = self._execute("SELECT max(pos) FROM entries").fetchall()
        if (newest or 0) > upto:
            return False, None, []
        for at in range(0, len(parts), _ROWS_PER_LOOK):
            chunk = list(parts[at : at + _ROWS_PER_LOOK])
            if self._execute(_statement(_STRAY_PARTS, "?", len(chunk), ")"), chunk).fetchall():
                raise self._parts_damaged()
            self._execute(_statement("DELETE FROM parts WHERE id IN (", "?", len(chunk), ")"), chunk)
        self._execute("UPDATE meta SET value = value + 1 WHERE key = 'swept'")
        return True, None, []

    def _refuse_if_regressed(self, newest: Mark) -> None:
        known = self._anchor.newest
        if known is not None and newest.pos <= known.pos:
            raise JournalRegressed(
                f"{self.path}: the store has lost records while it was open: {known.pos} were acknowledged, "
                f"and the next one would be number {newest.pos}. Nothing was written.",
                facts={"expected": known.pos, "found": newest.pos - 1},
                cures=(Advice("an older copy?", "put the newer file back, together with its -wal file"),),
            )

    def _note(self, newest: Mark) -> None:
        known = self._anchor.newest
        self._anchor.advance(newest)
        if known is None or known.pos == 0:
            # After its first record a store is never "new" again. That must survive a power cut.
            self._anchor.sync()

    def _clean_up(self, error: BaseException, *, committing: bool) -> None:
        """Leave no transaction open, and give up a handle that cannot be trusted. Raises the error for users."""
        if isinstance(error, UnicodeEncodeError):
            self._roll_back()
            raise UsageError(f"a run id or an index row cannot be stored: {error}") from error
        if not isinstance(error, Exception):  # an interrupt: before the commit, or after it, never in it
            self._roll_back()
            return
        number = self._writer.system_errno if self._writer is not None else 0
        if committing or isinstance(error, (*_POISONOUS, SurefootError, OSError)) or not self._roll_back():
            self._poison(str(error))
        if isinstance(error, (apsw.Error, OSError)):
            raise explain(error, self.path, system_errno=number) from error

    def _roll_back(self) -> bool:
        try:
            if self._writer is not None and self._writer.in_transaction:
                self._execute("ROLLBACK")
        except apsw.Error:
            return False
        return True

    # --- reading -----------------------------------------------------------------------------------

    def read(self, run: str, after: int = 0, limit: int | None = None) -> Stored:
        rows, heads = self._look((_RECORDS, (run, after, -1 if limit is None else limit)), (_HEAD, (run,)))
        return self._stored(run, rows, heads)

    def read_all(self, runs: Sequence[str]) -> list[Stored]:
        answers = iter(self._look(*(asked for run in runs for asked in ((_RECORDS, (run, 0, -1)), (_HEAD, (run,))))))
        return [self._stored(run, rows, heads) for run, rows, heads in zip(runs, answers, answers, strict=True)]

    def _stored(self, run: str, rows: list[tuple[Any, ...]], heads: list[tuple[Any, ...]]) -> Stored:
        try:
            records = [Record(run, *row) for row in _typed(rows, _RECORD_ROWS)]
            head = Head(*_typed(heads, _HEAD_ROWS)[0]) if heads else None
        except msgspec.ValidationError as error:
            raise JournalCorrupt(
                f"run {run}: a stored record is not what was written ({self.path}): {error}",
                run_id=run,
                facts=STRUCTURE,
                cures=restore(self.path),
            ) from None
        return Stored(records, head)

    def parts(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        found = self._parts_of(row for rows in self._look(*_part_questions(ids)) for row in rows)
        if len(found) < len(ids):
            self._refuse_if_parts_are_hidden()
        return found

    def _parts_of(self, rows: Iterable[tuple[Any, ...]]) -> dict[bytes, Part]:
        found = {}
        for name, *row in rows:
            if name != row[0]:
                raise self._parts_damaged()
            found[name] = Part(*row)
        return found

    def _refuse_if_parts_are_hidden(self) -> None:
        """Parts are found by an index. An index that lost its order hides parts, also those written from now on."""
        if not self._parts_checked:
            if self._ask("PRAGMA integrity_check('parts')", ()) != [("ok",)]:
                raise self._parts_damaged()
            self._parts_checked = True

    def _parts_damaged(self) -> JournalCorrupt:
        return damaged(self.path, "the index of the parts of values does not fit the parts.")

    def quarantined(self, run: str) -> list[Record]:
        found: list[Record] = []
        for row in self._ask(_QUARANTINED, (run,)):
            with contextlib.suppress(msgspec.ValidationError):  # this row cannot be read
                found += [Record(run, *values) for values in _typed([row], _RECORD_ROWS)]
        return found

    def names(self, prefix: str = "") -> list[str]:
        if not prefix:
            return [str(run) for (run,) in self._ask(_NAMES, ())]
        return [str(run) for (run,) in self._ask(_NAMES_FROM, between(prefix) * 2)]

    def scan(self, after: int, limit: int) -> list[tuple[int, Record]]:
        return self._records_in(self._ask(_SCAN, (after, limit)))

    def _records_in(self, rows: list[tuple[Any, ...]]) -> list[tuple[int, Record]]:
        try:
            return [(pos, Record(*row)) for pos, *row in _typed(rows, _SCAN_ROWS)]
        except msgspec.ValidationError as error:
            raise damaged(self.path, f"a stored record is not what was written: {error}", structure=False) from None

    def said(self, before: int, limit: int) -> list[tuple[int, Record]]:
        return self._records_in(self._ask(_SAID, (before, limit)))

    def scan_parts(self, after: int, limit: int) -> list[tuple[int, Part]]:
        rows = self._ask(_SCAN_PARTS, (after, limit))
        return [(row[0], Part(*row[1:])) for row in rows]

    def part_ids(self) -> list[bytes]:
        return [name for (name,) in self._ask("SELECT id FROM parts", ())]

    def changes(self) -> int:
        ((newest,),) = self._ask("SELECT max(pos) FROM entries", ())
        return newest or 0

    def runs(self, query: RunQuery) -> list[Listed]:
        self._check_list_once()
        return listed(query, self._place, self._page, self._found, self._rowless)

    def _place(self, run: str) -> int:
        places = self._ask(_PLACE, (run,))
        return places[0][0] if places else 0

    def lost_rows(self) -> list[str]:
        return [one.run for one in collect(_EVERYTHING, NEWEST, self._page) if one.row is None]

    def _page(self, before: int, many: int) -> list[Placed]:
        try:
            rows = self._ask(_LIST, (before, many))
        except JournalCorrupt:
            rows = self._page_one_by_one(before, many)
        return self._placed(rows)

    def _found(self, query: RunQuery, before: int, many: int) -> list[Placed]:
        """By the index that probably finds the fewest rows; `collect` checks the rest of the filter."""
        try:
            return self._placed(self._ask(*_search(query, before, many)))
        except JournalCorrupt:
            return self._page(before, many)  # a row is unreadable: the whole list shows which

    def _placed(self, rows: list[tuple[Any, ...]]) -> list[Placed]:
        if not all(type(row[0]) is int and type(row[1]) is str and row[0] == row[2] for row in rows):
            raise self._list_damaged()
        return [Placed(n, Listed(run, index_row((run, *row)) if row else None)) for n, run, _, *row in rows]

    def _rowless(self) -> list[Placed]:
        """Runs without a row."""
        lost = [] if self._have_each_other() else self._ask(_ROWLESS, ())
        return [Placed(n, Listed(run, None)) for n, run in lost]

    def _have_each_other(self) -> bool:
        """Whether every run has a row, and every row a run. Checked again only if anything was written since."""
        version = self._written()
        if self._compared_at != version:
            ((same,),) = self._ask(_BOTH, ())
            self._compared_at, self._agree = version, bool(same)
        return self._agree

    def _check_list_once(self) -> None:
        if not self._list_checked:
            ((by_table, by_index),) = self._ask(_COUNTS, ())
            headless: list[Any] = []
            with contextlib.suppress(JournalCorrupt):  # a damaged cache hides nothing: its rows are then None
                headless = [] if self._have_each_other() else self._ask(_HEADLESS, ())
            if by_table != by_index or headless:
                raise self._list_damaged()
            self._list_checked = True

    def _list_damaged(self) -> JournalCorrupt:
        said = "the list of runs is not what was written. Runs can still be read by their id."
        return damaged(self.path, said, structure=False)

    def _page_one_by_one(self, before: int, many: int) -> list[tuple[Any, ...]]:
        """One damaged row must not hide the others."""
        found: list[tuple[Any, ...]] = []
        while len(found) < many:
            try:
                rows = self._ask(_LIST, (before, 1))
            except JournalCorrupt:
                rows = self._ask(_LIST_BARE, (before, 1))
            if not rows:
                break
            found += rows
            before = rows[0][0]
        return found

    def _look(self, *questions: tuple[str, Sequence[Any]]) -> list[list[tuple[Any, ...]]]:
        """The results of all queries, from one and the same state."""
        self._refuse_unless_usable()
        self._refuse_if_replaced()
        try:
            with self._reading:
                self._refuse_unless_usable()
                with snapshot(self._reader):
                    return [self._reader.execute(sql, values).fetchall() for sql, values in questions]
        except UnicodeEncodeError as error:
            raise UsageError(f"no run can have such an id: {error}") from error
        except (apsw.Error, UnicodeDecodeError) as error:
            if isinstance(error, apsw.IOError):
                self._poison(str(error))
            raise explain(error, self.path) from error

    # --- settings, opening, closing ------------------------------------------------------------------

    def durability(self) -> dict[str, str]:
        self._refuse_unless_usable()
        with self._writing:
            self._refuse_unless_usable()
            writer = self._writer or self._open_writer()
            return {
                "backend": "sqlite",
                "path": self.path,
                "sqlite": apsw.sqlite_lib_version(),
                **_settings(writer),
                "anchor": anchor_path(self.path),
            }

    def close(self) -> None:
        if self._refusal:
            return  # closed, given up, or a parent's: closing would damage the parent's store
        with self._writing:
            if not self._refusal:
                with contextlib.suppress(OSError):
                    self._anchor.sync()
                self._give_up(f"{self.path}: this store has been closed; open it again.", checkpoint=True)

    def abandon(self) -> None:
        """Close without writing: the log of a damaged database is evidence, and is not folded into it."""
        with self._writing:
            self._poison("its database is damaged, or could not be read")

    def _open_writer(self) -> apsw.Connection:
        with explained(self.path):
            writer = connect(self.path, readonly=False)
            try:
                _configure(writer, self.path)
            except BaseException:
                disconnect(writer, checkpoint=False)
                raise
        self._writer = writer
        self._execute = writer.cursor().execute
        self._changes = writer.changes
        self._last_position = writer.last_insert_rowid
        return writer

    def _poison(self, why: str) -> None:
        """Give the handle up for good: nothing is retried on it. Do not call with `_reading` held."""
        self._give_up(
            f"{self.path}: this handle was given up after a failure ({why}). {self._outlook()}", checkpoint=False
        )

    def _outlook(self) -> str:
        """The expected result of opening the store again."""
        try:
            same = identity(self.path) == self._identity
        except FileNotFoundError:
            return (
                "Everything that was acknowledged was in that file. Moved? Put it back, with its -wal and -anchor files. "
                "Gone? Put a backup back: a new store would know nothing of what its runs have done."
            )
        except OSError:
            same = True  # it cannot be read now, which proves nothing about its content
        if not same:
            return "Open the store again: what lies there now is held against the anchor before it is believed."
        return "Open the store again: what was acknowledged is there, and what was not is either there whole or not at all."

    def _give_up(self, refusal: str, *, checkpoint: bool) -> None:
        with self._writing, self._reading:
            if self._refusal:
                return
            self._refusal = refusal
            self._stirred.set()
            if checkpoint:
                # Only when closed in good order: after a failure, calls of this process may still be in flight, and a
                # worker that counted it as dead would run them again. The operating system releases the lock when the
                # process ends.
                self._liveness.leave()
            disconnect(self._reader, checkpoint=False)
            if self._writer is not None:  # the last to close: this folds the log into the database
                if checkpoint:
                    _empty_log(self._writer)
                disconnect(self._writer, checkpoint=checkpoint)
            self._anchor.close()
        self._note_closed()

    def _refuse_if_replaced(self) -> None:
        """Refuse a database that was moved away or replaced: it still accepts commits, which would be lost."""
        if guard.identity(self.path) != self._identity:
            what = "replaced" if os.path.lexists(self.path) else "removed"
            self._poison(f"the database file was {what} while it was open")
            self._refuse_unless_usable()


def _no_writer_yet(*_: object) -> Never:
    raise AssertionError("the writer is opened before it is used")


class _Refused(Exception):
    """The run's head is not the expected one, or the record's place is taken."""


# --- statements and rows -----------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _statement(start: str, row: str, rows: int, end: str) -> str:
    return start + ", ".join([row] * rows) + end


def _typed(rows: list[tuple[Any, ...]], expected: Any) -> list[tuple[Any, ...]]:
    """SQLite stores any type in any column, and a flipped bit may turn a number into a text."""
    return cast("list[tuple[Any, ...]]", msgspec.convert(rows, expected, builtin_types=(bytes,)))


def _part_questions(ids: Sequence[bytes]) -> list[tuple[str, list[bytes]]]:
    chunks = [list(ids[at : at + _ROWS_PER_LOOK]) for at in range(0, len(ids), _ROWS_PER_LOOK)]
    return [(_statement(_PARTS, "?", len(chunk), ")"), chunk) for chunk in chunks]


def _index_values(row: IndexRow) -> tuple[Any, ...]:
    values = tuple(to_values(row).values())
    return (*values[:_CHECKSUM], _checksum(values), *values[_CHECKSUM:], row.run)


def _search(query: RunQuery, before: int, many: int) -> tuple[str, tuple[Any, ...]]:
    """A statement that finds all that the query asks for, and perhaps more: `collect` drops the rest."""
    if query.labels:
        ((name, value), *_) = query.labels.items()
        return _LABELLED, (name, value, before, many)
    # First what few runs have. Most runs are done.
    last = ("workflow", "status") if query.status == DONE else ("status", "workflow")
    wanted = [(column, value) for column in ("need", "queue", *last) if (value := getattr(query, column))]
    if not wanted and query.claimed:
        return _CLAIMED, (before, many)
    if not wanted:
        return _LIST, (before, many)
    (first, value), *others = wanted
    any_need = (first, value) == ("need", ANY)
    by = "r.need > ''" if any_need else f"r.{first} = ?"
    by += f" AND r.{first} > ''" if first in ("need", "queue") else ""  # so that SQLite takes the partial index
    # A plus keeps SQLite from finding rows by that column.
    also = "".join(f" AND +r.{column} = ?" for column, _ in others)
    values = [value for _, value in wanted[1 if any_need else 0 :]]
    return f"{_FIND}{by}{also} AND r.n < ? ORDER BY r.n DESC LIMIT ?", (*values, before, many)


def _checksum(values: Iterable[Any]) -> int:
    return zlib.crc32(msgspec.json.encode(tuple(values)))


def index_row(values: Sequence[Any]) -> IndexRow | None:
    """The row with these values of the columns of `runs`, if it is what was written."""
    written = (*values[:_CHECKSUM], *values[_CHECKSUM + 1 : len(FIELDS) + 1])
    return from_values(written) if values[_CHECKSUM] == _checksum(written) else None


# --- settings ------------------------------------------------------------------------------------------


def _configure(writer: apsw.Connection, path: str) -> None:
    for pragma in ("synchronous=FULL", "fullfsync=1", "checkpoint_fullfsync=1"):
        writer.execute(f"PRAGMA {pragma}").fetchall()
    writer.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}").fetchall()
    _keep_log_on_close(writer)
    found = _settings(writer)
    if (found["journal_mode"], found["synchronous"]) != DURABLE:
        raise StoreNotDurable(
            f"{path}: SQLite runs with journal_mode={found['journal_mode']}, synchronous={found['synchronous']} here; "
            "wal and full are needed to keep what is acknowledged.",
            facts=dict(found),
            cures=(Advice("network disk?", "put the store on a local file system"),),
        )


def _keep_log_on_close(writer: apsw.Connection) -> None:
    """An existing log is overwritten and not extended: commits are faster."""
    on = array("i", [1])
    writer.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, on.buffer_info()[0])


def _empty_log(writer: apsw.Connection) -> None:
    """Fold the log into the database and free its space, unless another process still needs it."""
    with contextlib.suppress(apsw.Error):
        writer.set_busy_timeout(0)
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _settings(writer: apsw.Connection) -> dict[str, str]:
    levels = {0: "off", 1: "normal", 2: "full", 3: "extra"}
    return {
        "journal_mode": str(writer.pragma("journal_mode")),
        "synchronous": levels.get(writer.pragma("synchronous"), "unknown"),
        "fullfsync": "on" if writer.pragma("fullfsync") else "off",
        "checkpoint_fullfsync": "on" if writer.pragma("checkpoint_fullfsync") else "off",
        "wal_autocheckpoint": str(writer.pragma("wal_autocheckpoint")),
        "page_size": str(writer.pragma("page_size")),
    }
