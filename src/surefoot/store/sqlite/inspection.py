"""What is in the file of a SQLite store that may be damaged: looked at in a copy.

A damaged store cannot be opened, and evidence must not be opened: SQLite would fold the log into the database. So the
files are copied to a private folder as plain bytes, the copy is read as far as it answers (`damaged_reader.py`), every
record is checked against its seal, and the copy is deleted. (Copying plain bytes is allowed only in a process that does
not have the store open.)
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from struct import Struct as Layout
from typing import IO, Any, Final

import apsw

from surefoot.core.audit import Audit
from surefoot.core.cure import Advice
from surefoot.core.entry import Entry
from surefoot.core.parts import Part, damaged_parts
from surefoot.core.seal import Record, Sealer, from_record, references
from surefoot.errors import CodecMissing, Damaged, SchemaMismatch, Stopped, StoreFull, StoreUnavailable
from surefoot.store import disk
from surefoot.store.anchor import Mark
from surefoot.store.inspection import (
    SQLITE,
    AnchorSeen,
    Bad,
    FileOffset,
    JournalSeen,
    PartSeen,
    StoreSeen,
    Watch,
    anchor_seen,
    newest_mark,
    unreadable,
)
from surefoot.store.sqlite import files
from surefoot.store.sqlite.damaged_reader import LOST_HEAD, Remains, fits, is_name, is_number
from surefoot.store.sqlite.files import anchor_path
from surefoot.store.sqlite.schema import APPLICATION_ID, COLUMNS

_HEADER: Final = Layout(">16sH10sI")
_PAGE: Final = 4096
_TRIES: Final = 5
_NEEDLE: Final = 24
"""A body with so many bytes is unlikely to be anywhere else in the file."""
_PARTS_KEPT: Final = 4000
_CHUNK: Final = 1024 * 1024
_SPARE: Final = 16 * 1024 * 1024
"""So many bytes stay free beside the copy: it is read as a database, and other programs use that disk as well."""


def look_into(path: str, watch: Watch) -> StoreSeen:
    with _copy(path, watch) as (copy, notes, faults):
        with _opened(copy) as connection:
            problem = _schema_problem(path, connection)
        if problem:
            faults.append(f"page 1, which describes the tables, is damaged ({problem})")
            notes.append("read with the first page that every store of this format has")
            _graft(copy)
        with _opened(copy) as connection:
            return _Look(path, copy, connection, watch).seen(faults, notes)


@contextlib.contextmanager
def _opened(copy: str) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(copy, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        files.be_careful(connection)
        yield connection
    finally:
        connection.close(force=True)


@contextlib.contextmanager
def _copy(path: str, watch: Watch) -> Iterator[tuple[str, list[str], list[str]]]:
    """The database, its log and its anchor in a private folder, as they were at one moment; notes and faults."""
    folder = tempfile.mkdtemp(prefix="surefoot-inspect-")
    try:
        copy = os.path.join(folder, "copy.db")
        notes: list[str] = []
        for _ in range(_TRIES):
            before = _state(path)
            watch(f"copying {os.path.getsize(path) / 1e6:,.0f} MB")
            _copy_files(path, copy)
            if _state(path) == before:
                break
        else:
            notes.append("it was written to all the time: what looks damaged at its end may be the copy's fault")
        os.chmod(copy, 0o600)
        yield copy, notes, _lengthen(copy)
    except OSError as error:
        if error.errno in disk.FULL:
            raise _no_room(path, os.path.dirname(folder)) from error
        raise unreadable(path, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_files(path: str, copy: str) -> None:
    """Plain files only, and no more bytes than they had when they were opened: the files may be an attack."""
    with contextlib.ExitStack() as stack:
        files: list[tuple[str, IO[bytes], int]] = []
        for suffix in ("-anchor", "-wal", ""):  # the anchor first: then the journal is ahead of it, not behind
            disk.remove(copy, suffix)
            with contextlib.suppress(FileNotFoundError):
                file, size = _plain(path + suffix)
                files.append((suffix, stack.enter_context(file), size))
        folder = os.path.dirname(copy)
        if sum(size for _, _, size in files) > shutil.disk_usage(folder).free - _SPARE:
            raise _no_room(path, os.path.dirname(folder))
        for suffix, file, size in files:
            with open(copy + suffix, "xb") as target:
                while chunk := file.read(min(_CHUNK, size - target.tell())):
                    target.write(chunk)


def _plain(path: str) -> tuple[IO[bytes], int]:
    """A plain file, opened, and its size. A link is not followed, and a pipe not waited for."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _not_plain(path) from error
        raise
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise _not_plain(path)
    return os.fdopen(fd, "rb"), found.st_size


def _not_plain(path: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} is a link, a pipe or a device where a plain file belongs: it is not read. "
        "Put the file itself there, or move this away, and inspect again."
    )


def _no_room(path: str, folder: str) -> StoreFull:
    return StoreFull(
        f"{path} is looked at in a copy, and {folder} has no room for it. "
        "Make some, or name a folder that has it in TMPDIR."
    )


def _state(path: str) -> list[tuple[int, int] | None]:
    found: list[tuple[int, int] | None] = []
    for suffix in ("", "-wal"):
        try:
            seen = os.lstat(path + suffix)
            found.append((seen.st_size, seen.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return found


def _lengthen(copy: str) -> list[str]:
    """Let SQLite read what there is of the copy: a file that was cut gets its length back. Returns what was wrong."""
    with open(copy, "r+b") as file:
        head = file.read(_HEADER.size)
        size = os.fstat(file.fileno()).st_size
        if len(head) < _HEADER.size or not head.startswith(SQLITE):
            return []
        _, page_size, _, pages = _HEADER.unpack(head)
        whole = page_size * pages
        if page_size != _PAGE or not size < whole < size + 2**40:
            return []
        file.truncate(whole)
    return [f"the file is shorter than it says: {size} bytes of {whole}"]


def _graft(copy: str) -> None:
    """Give the copy the first page that every store of this format has. Never done to the original."""
    fresh = copy + "-fresh"
    with open(fresh, "wb"):
        pass
    files.fill(fresh, bytes(16))
    with open(fresh, "rb") as file:
        page = bytearray(file.read(_PAGE))
    with open(copy, "r+b") as file:
        pages = max(1, -(-os.fstat(file.fileno()).st_size // _PAGE))
        page[28:32] = pages.to_bytes(4, "big")
        page[92:96] = page[24:28]  # "the number of pages is right"
        file.write(page)
        file.truncate(pages * _PAGE)


class _Look:
    """One look at the copy of one store."""

    def __init__(self, path: str, copy: str, connection: apsw.Connection, watch: Watch) -> None:
        self._path = path
        self._copy = copy
        self._watch = watch
        self._faults: list[str] = []
        self._anchor = anchor_seen(copy + "-anchor")
        self._remains = Remains(connection)
        self._parts: dict[bytes, Part] = {}
        self._store_id = b""

    def seen(self, faults: list[str], notes: list[str]) -> StoreSeen:
        self._faults = faults
        meta = self._remains.meta()
        number = meta.get("format")
        files.refuse_newer(self._path, number)
        mark = newest_mark(self._anchor)
        self._store_id = self._identified(meta.get("store"), mark)
        self._watch("looking at the pages")
        pages = self._remains.bad_pages()
        heads, names = self._heads()
        places, misfits = self._places(mark)
        runs_aside = {row[0]: row[2] for row in self._remains.rows("quarantine") if is_number(row[0])}
        aside = Counter(run for run in runs_aside.values() if is_name(run))
        journals: list[JournalSeen] = []
        for name in sorted({*names, *places}):
            self._watch(f"{len(journals)} of {len(names)} journals")
            journals.append(self._journal(name, places.get(name, []), heads.get(name), aside[name]))
        newest = max((pos for found in places.values() for _, pos in found), default=0)
        return StoreSeen(
            path=self._path,
            bytes=disk.size(self._path),
            log_bytes=disk.size(self._path + "-wal"),
            store=self._store_id.hex(),
            format=number if type(number) is int else None,
            newest=newest,
            anchor=AnchorSeen(anchor_path(self._path), self._anchor.slots, self._reach(mark, newest, meta)),
            journals=tuple(journals),
            faults=tuple(self._faults),
            pages=tuple(pages),
            unread=tuple(dict.fromkeys(self._remains.gaps)),
            misfits=misfits,
            notes=tuple(notes),
        )

    def _identified(self, said: object, mark: Mark | None) -> bytes:
        if type(said) is bytes and len(said) == 16:
            return said
        self._faults.append("the database does not tell the store's id" + (": taken from the anchor" if mark else ""))
        return mark.store if mark is not None else bytes(16)

    def _heads(self) -> tuple[dict[str, tuple[int, bytes]], set[str]]:
        by_index = self._remains.index("heads")
        listed = {n: run for run, n in by_index.rows if is_name(run) and is_number(n)}
        rows = [row for row in self._remains.rows("heads", listed) if fits("heads", row)]
        if {row[0]: row[1] for row in rows} != listed:
            self._faults.append("the heads and their index do not name the same journals")
        return {row[1]: (row[2], row[3]) for row in rows}, {*listed.values(), *(row[1] for row in rows)}

    def _places(self, mark: Mark | None) -> tuple[dict[str, list[tuple[int, int]]], int]:
        """Where the records of each journal are, and how many rows are no records."""
        known = [pos for _, _, pos in self._remains.index("entries").rows if is_number(pos)]
        found: dict[str, dict[int, tuple[int, int]]] = {}
        misfits = 0
        for row in self._remains.rows("entries", known, upto=mark.pos if mark is not None else 0):
            if fits("entries", row):
                found.setdefault(row[1], {})[row[0]] = (row[2], row[0])
            else:
                misfits += 1
        return {run: sorted(places.values()) for run, places in found.items()}, misfits

    def _journal(
        self, name: str, places: list[tuple[int, int]], head: tuple[int, bytes] | None, quarantined: int
    ) -> JournalSeen:
        audit = Audit(Sealer(self._store_id, name), read=_entry)
        bad_parts: list[PartSeen] = []
        for _, pos in places:
            record = self._remains.record(pos)
            if record is None:
                audit.blame("its row cannot be read a second time")
                continue
            entry = audit.take(record)
            if entry is not None:
                bad_parts += self._bad_parts(record.seq, entry)
        broken = audit.ends(None if head is None or head[1] == LOST_HEAD else head)
        return JournalSeen(
            name=name,
            entries=len(places),
            valid=audit.valid if broken is None else broken.valid,
            head=head[0] if head is not None and head[1] != LOST_HEAD else None,
            bad=None if broken is None else Bad(broken.entry, broken.why, self._place(broken.record)),
            beyond=audit.beyond,
            quarantined=quarantined,
            parts=tuple(bad_parts[:20]),
            parts_bad=len(bad_parts),
        )

    def _bad_parts(self, seq: int, entry: Entry) -> Iterator[PartSeen]:
        for reference in references(entry):
            try:
                bad = damaged_parts(reference, self.fetch)
            except Stopped as error:
                bad = {reference.digest: error.summary}
            yield from (PartSeen(seq, name.hex(), why) for name, why in bad.items())

    def fetch(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        """Parts by name, as found. An unreadable part is left out, and then reported as missing or damaged."""
        if len(self._parts) > _PARTS_KEPT:
            self._parts.clear()
        for name in ids:
            if name not in self._parts:
                question = f"SELECT {', '.join(COLUMNS['parts'])} FROM parts WHERE id = ?"  # noqa: S608 - our names
                rows, _ = self._remains.collect(question, (name,))
                if rows and fits("parts", rows[0]):
                    self._parts[name] = Part(*rows[0][1:])
        return {name: self._parts[name] for name in ids if name in self._parts}

    def _place(self, record: Record | None) -> FileOffset | None:
        """Where the bytes of a record are: in the log, if they are there, since the log is newer."""
        if record is None:
            return None
        needle = record.body if len(record.body) >= _NEEDLE else record.seal
        for suffix in ("-wal", ""):
            offset = _find(self._copy + suffix, needle)
            if offset >= 0:
                return FileOffset(os.path.basename(self._path) + suffix, offset, 0 if suffix else offset // _PAGE + 1)
        return None

    def _reach(self, mark: Mark | None, newest: int, meta: dict[Any, Any]) -> str:
        """What is wrong between anchor and database; empty: the one reaches the other."""
        if mark is None:
            return self._anchor.why
        if mark.store != self._store_id:
            return "it belongs to another store than the database beside it"
        if newest < mark.pos:
            return f"it knows of record {mark.pos}, but the newest that can be read is {newest}: records are lost"
        there = self._remains.record(mark.pos) if mark.pos else None
        rewritten = meta.get("rewritten")
        replaced = type(rewritten) is int and rewritten >= mark.pos
        if mark.pos and not replaced and (there is None or there.seal != mark.seal):
            return f"record {mark.pos} is not the one it knows" if there else f"record {mark.pos} cannot be read"
        return ""


def _entry(record: Record) -> Entry | None:
    """None for an entry of a newer version: it is whole, but we cannot read it."""
    try:
        return from_record(record)
    except (SchemaMismatch, CodecMissing):
        return None


def _schema_problem(path: str, connection: apsw.Connection) -> str:
    try:
        number, schema = files.description(connection)
    except (apsw.Error, UnicodeDecodeError) as error:
        return str(error)
    if number != APPLICATION_ID and not schema.keys() & COLUMNS.keys():
        raise Damaged(
            f"{path}: a database of another program lies where a store was: the store's anchor is beside it.",
            cures=(Advice("have the store?", "put it back, together with its -wal file"),),
        )
    return "" if files.is_ours(schema) else "it is not what was written"


def _find(path: str, needle: bytes) -> int:
    with (
        contextlib.suppress(OSError, ValueError),  # there is no log, or nothing in it
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        return data.rfind(needle) if path.endswith("-wal") else data.find(needle)
    return -1
