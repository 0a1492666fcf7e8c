"""What is in a file, without believing it: looked at in a copy, so that nothing near the original is touched.

A store that is damaged cannot be opened, and opening is what one must not do with evidence: SQLite would fold the log
into the database. So the files are copied to a private folder as plain bytes, the copy is read as far as it answers
(`remains.py`), every record is held against its seal, and the copy is deleted. (Copying plain bytes is allowed only in
a process that does not have the store open.)
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from struct import Struct as Layout
from typing import IO, Any, Final
from urllib.parse import unquote

import apsw
import msgspec
from msgspec import Struct

from surefoot.core import generation
from surefoot.core.parts import Part, damaged_parts
from surefoot.core.seal import GENESIS, Record, Sealer, from_record, references
from surefoot.errors import (
    CodecMissing,
    Damaged,
    NotFound,
    SchemaMismatch,
    Stopped,
    StoreFull,
    StoreUnavailable,
    UsageError,
)
from surefoot.store import anchor as anchors
from surefoot.store import generation_files, sqlite_file
from surefoot.store.anchor import Mark
from surefoot.store.remains import COLUMNS, BadPage, Gap, Remains
from surefoot.store.salvage import LOST_HEAD, _is_entry, _is_head, _is_name, _is_number, _is_part
from surefoot.store.sqlite_file import APPLICATION_ID, FORMAT, anchor_path

_SQLITE: Final = b"SQLite format 3\0"
_LOG_MAGIC: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_HEADER: Final = Layout(">16sH10sI")
_NUMBER_AT: Final = 68
_PAGE: Final = 4096
_TRIES: Final = 5
_NEEDLE: Final = 24
"""Bytes of a body from which on it is unlikely to be anywhere else."""
_PARTS_KEPT: Final = 4000
_CHUNK: Final = 1024 * 1024
_SPARE: Final = 16 * 1024 * 1024
"""So many bytes stay free where the copy lies: it is read as a database, and others use that disk as well."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LIMIT: Final = 2**63 - 1

Watch = Callable[[str], object]


class Place(Struct, frozen=True):
    """Where in a file something is."""

    file: str
    offset: int
    page: int


class Slot(Struct, frozen=True):
    holds: bool
    pos: int = 0
    seal: str = ""
    store: str = ""
    why: str = ""


class AnchorSeen(Struct, frozen=True):
    path: str
    slots: tuple[Slot, Slot]
    why: str = ""
    """What is wrong with it, or between it and its database."""

    @property
    def sound(self) -> bool:
        return not self.why and all(slot.holds for slot in self.slots)


class Bad(Struct, frozen=True):
    """The first entry of a journal that cannot be used."""

    seq: int
    why: str
    place: Place | None = None


class PartSeen(Struct, frozen=True):
    entry: int
    part: str
    why: str


class JournalSeen(Struct, frozen=True):
    name: str
    entries: int
    """How many were found."""
    valid: int
    """How many hold, from the first on."""
    head: int | None
    """Where its head says that it ends; None: there is no head, or it cannot be read."""
    bad: Bad | None
    beyond: int
    """Entries behind the first bad one that are whole by themselves."""
    quarantined: int
    parts: tuple[PartSeen, ...]
    """Parts of its values that are missing or damaged."""
    parts_bad: int

    @property
    def sound(self) -> bool:
        return self.bad is None and not self.parts_bad


class StoreSeen(Struct, frozen=True):
    path: str
    bytes: int
    log_bytes: int
    store: str
    format: int | None
    newest: int
    """The highest position that was read."""
    anchor: AnchorSeen
    journals: tuple[JournalSeen, ...]
    faults: tuple[str, ...]
    """What is wrong with the store as a whole."""
    pages: tuple[BadPage, ...]
    unread: tuple[Gap, ...]
    misfits: int
    """Rows of the journal that are no records."""
    notes: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not (self.faults or self.pages or self.unread or self.misfits) and (
            self.anchor.sound and all(journal.sound for journal in self.journals)
        )


class GenerationSeen(Struct, frozen=True):
    number: int
    why: str
    """What is wrong with it; empty: it is sound."""
    at: int
    schema: int
    size: int
    host: str
    pid: int


class ShelfSeen(Struct, frozen=True):
    """A checkpoint that is kept as files."""

    path: str
    name: str
    generations: tuple[GenerationSeen, ...]
    why: str = ""

    @property
    def sound(self) -> bool:
        return not self.why and not any(one.why for one in self.generations)


class ShelvesSeen(Struct, frozen=True):
    path: str
    checkpoints: tuple[ShelfSeen, ...]

    @property
    def sound(self) -> bool:
        return all(one.sound for one in self.checkpoints)


Seen = StoreSeen | AnchorSeen | ShelvesSeen


# --- what kind of file -------------------------------------------------------------------------------


def look(path: str, watch: Watch) -> Seen:
    """What is there. `UsageError` if it is nothing of ours, `NotFound` if there is nothing."""
    path = os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)  # its log lies where it really is
    shelves = _shelves(path)
    if shelves:
        return ShelvesSeen(path, tuple(_shelf(folder, number) for folder, number in shelves))
    start = first_bytes(path)
    if start.startswith(b"sfanchor") or (path.endswith("-anchor") and not start.startswith(_SQLITE)):
        return _anchor(path)
    if start.startswith(_LOG_MAGIC) and path.endswith("-wal"):
        raise UsageError(f"{path} is the log of a SQLite database. Inspect {path.removesuffix('-wal')} instead.")
    if start.startswith(_SQLITE):
        number = int.from_bytes(start[_NUMBER_AT : _NUMBER_AT + 4], "big")
        if number != APPLICATION_ID and not _has_anchor(path):
            raise _foreign(path, "a SQLite database of another program")
        return _store(path, watch)
    if _has_anchor(path):
        return _store(path, watch)  # it was a store: its first page is gone, or all of it
    if not start:
        raise _foreign(path, "an empty file")
    raise _foreign(path, "a text file" if _is_text(start) else "a file of some other program")


def first_bytes(path: str, count: int = 4096) -> bytes:
    """The beginning of a plain file; every way in which there is none has its own answer."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                raise _foreign(path, "a directory, and there are no checkpoints in it" + _stores_in(path))
            if not stat.S_ISREG(found.st_mode):
                raise _foreign(path, "no plain file")
            return os.read(fd, count)
        finally:
            os.close(fd)
    except FileNotFoundError:
        if _has_anchor(path):
            raise Damaged(
                f"{path}: the database is missing, but its anchor is there: it was there once.",
                cures=(("have a copy?", f"put {os.path.basename(path)} back, together with its -wal file"),),
            ) from None
        raise NotFound(f"there is nothing at {path}.") from None
    except OSError as error:
        raise unreadable(path, error) from error


def _stores_in(folder: str) -> str:
    try:
        names = [name for name in sorted(os.listdir(folder)) if _has_anchor(os.path.join(folder, name))]
    except OSError:
        return ""
    return f"; did you mean {os.path.join(folder, names[0])}?" if names else ""


def unreadable(path: str, error: OSError) -> StoreUnavailable | NotFound:
    if error.errno in (errno.ENOTDIR, errno.ENAMETOOLONG):
        return NotFound(f"there is nothing at {path}.")
    return StoreUnavailable(f"{path}: cannot be read: {error.strerror}. It must be readable for this user.")


def _foreign(path: str, what: str) -> UsageError:
    return UsageError(f"{path} is nothing of surefoot's: it is {what}{'' if what.endswith('?') else '.'}")


def _has_anchor(path: str) -> bool:
    return os.path.isfile(anchor_path(path))


def _is_text(data: bytes) -> bool:
    try:
        return data[: len(data) - 3].decode("utf-8").isascii() or b"\0" not in data
    except UnicodeDecodeError:
        return False


# --- checkpoints as files ----------------------------------------------------------------------------


def _shelves(path: str) -> list[tuple[str, int]]:
    """The folders of checkpoints that are meant by a path, and the generation, if it names one."""
    folder, name = os.path.split(path)
    one = generation_files._GENERATION.fullmatch(name)
    if one is not None and os.path.isfile(path) and _is_shelf(folder):
        return [(folder, int(one[1]))]
    if not os.path.isdir(path):
        return []
    if _is_shelf(path):
        return [(path, 0)]
    try:
        inside = sorted(os.path.join(path, name) for name in os.listdir(path))
    except OSError as error:
        raise unreadable(path, error) from error
    return [(folder, 0) for folder in inside if os.path.isdir(folder) and _is_shelf(folder)]


def _is_shelf(folder: str) -> bool:
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise unreadable(folder, error) from error
    return generation_files._NOTE in names or any(map(_begins_as_generation, (os.path.join(folder, n) for n in names)))


def _begins_as_generation(path: str) -> bool:
    if not generation_files._GENERATION.fullmatch(os.path.basename(path)) or not os.path.isfile(path):
        return False
    return generation_files._FORMAT_NAME.match(first_bytes(path, 64)) is not None


def _shelf(folder: str, number: int) -> ShelfSeen:
    root, base = os.path.split(folder)
    name = _shelf_name(folder, base)
    shelf = generation_files.FileShelf(root, name)
    found = shelf.look() if generation_files.file_name(name) == base else None
    if found is None:
        return ShelfSeen(folder, name, (), "no generation of it can be read, so its name is not known either")
    wanted = [one for one in found.seen if number in (0, one.number)]
    return ShelfSeen(folder, name, tuple(_generation(shelf, one) for one in wanted), found.doubt)


def _shelf_name(folder: str, base: str) -> str:
    """The checkpoint's name: as its folder says it, or, if that was too long to be said there, as a generation does."""
    for file in sorted(os.listdir(folder)):
        path = os.path.join(folder, file)
        if "%~" in base and _begins_as_generation(path):
            found = re.match(rb'[^\n]*?"name":("(?:[^"\\]|\\.)*")', first_bytes(path))
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                return str(msgspec.json.decode(found[1])) if found else unquote(base)
    return unquote(base)


def _generation(shelf: generation_files.FileShelf, one: generation.Seen) -> GenerationSeen:
    why = one.why or (one.unknown.args[0] if one.unknown is not None else "")
    if not why:
        try:
            shelf.state(one)
        except Stopped as error:
            why = error.summary
    return GenerationSeen(one.number, str(why), one.at, one.schema, one.size, one.host, one.pid)


# --- anchors -----------------------------------------------------------------------------------------


def _anchor(path: str) -> AnchorSeen:
    try:
        with open(path, "rb") as file:
            raw = file.read(2 * _PAGE)
    except FileNotFoundError:
        nothing = Slot(holds=False, why="is missing")
        return AnchorSeen(path, (nothing, nothing), "there is no anchor, so nobody can say whether anything is lost")
    except OSError as error:
        raise unreadable(path, error) from error
    first, second = _slot(raw[: anchors._SLOT_BYTES]), _slot(raw[anchors._SECOND : anchors._FILE_BYTES])
    if not first.holds and not second.holds:
        return AnchorSeen(path, (first, second), "neither slot holds, so nobody can say whether anything is lost")
    return AnchorSeen(path, (first, second))


def _slot(raw: bytes) -> Slot:
    try:
        mark = anchors._unpacked(raw)
    except SchemaMismatch as error:
        return Slot(holds=False, why=error.summary)
    if mark is None:
        return Slot(holds=False, why=f"is damaged ({len(raw)} bytes, and its checksum does not fit)")
    return Slot(holds=True, pos=mark.pos, seal=mark.seal.hex(), store=mark.store.hex())


def _newest(seen: AnchorSeen) -> Mark | None:
    marks = [Mark(bytes.fromhex(slot.store), slot.pos, bytes.fromhex(slot.seal)) for slot in seen.slots if slot.holds]
    return max(marks, key=lambda mark: mark.pos, default=None)


# --- stores ------------------------------------------------------------------------------------------


def _store(path: str, watch: Watch) -> StoreSeen:
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
        for setting in (apsw.SQLITE_DBCONFIG_DEFENSIVE, apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE):
            connection.config(setting, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.execute("PRAGMA cell_size_check=ON").fetchall()
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
        yield copy, notes, _mend_copy(copy)
    except OSError as error:
        if error.errno in _FULL:
            raise _no_room(path, os.path.dirname(folder)) from error
        raise unreadable(path, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_files(path: str, copy: str) -> None:
    """Plain files only, and no more bytes than they had when they were opened: what lies there may be meant to hurt."""
    with contextlib.ExitStack() as stack:
        files: list[tuple[str, IO[bytes], int]] = []
        for suffix in ("-anchor", "-wal", ""):  # the anchor first: then the journal is ahead of it, not behind
            with contextlib.suppress(FileNotFoundError):
                os.unlink(copy + suffix)
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


def _mend_copy(copy: str) -> list[str]:
    """Make the copy such that SQLite reads what there is: a file that was cut gets its length back. What was wrong."""
    with open(copy, "r+b") as file:
        head = file.read(_HEADER.size)
        size = os.fstat(file.fileno()).st_size
        if len(head) < _HEADER.size or not head.startswith(_SQLITE):
            return []
        _, page_size, _, pages = _HEADER.unpack(head)
        whole = page_size * pages
        if page_size != _PAGE or not size < whole < size + 2**40:
            return []
        file.truncate(whole)
    return [f"the file is shorter than it says: {size} bytes of {whole}"]


def _graft(copy: str) -> None:
    """Give the copy the first page that every store of this format begins with. Only ever done to a copy."""
    fresh = copy + "-fresh"
    with open(fresh, "wb"):
        pass
    sqlite_file._fill(fresh, bytes(16))
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
        self._anchor = _anchor(copy + "-anchor")
        self._remains = Remains(connection)
        self._parts: dict[bytes, Part] = {}
        self._store_id = b""

    def seen(self, faults: list[str], notes: list[str]) -> StoreSeen:
        self._faults = faults
        meta: dict[Any, Any] = dict(self._remains.keyed("meta", ("store", "format", "rewritten", "swept")).rows)
        number = meta.get("format")
        if type(number) is int and number > FORMAT:
            raise SchemaMismatch(
                f"{self._path}: this store has format {number}, this version of surefoot knows up to {FORMAT}.",
                cures=(("use", "the version of surefoot that made it, or a newer one"),),
            )
        mark = _newest(self._anchor)
        self._store_id = self._identified(meta.get("store"), mark)
        self._watch("looking at the pages")
        pages = self._remains.bad_pages()
        heads, names = self._heads()
        places, misfits = self._places(mark)
        aside = self._aside()
        journals: list[JournalSeen] = []
        for name in sorted({*names, *places}):
            self._watch(f"{len(journals)} of {len(names)} journals")
            journals.append(self._journal(name, places.get(name, []), heads.get(name), aside.get(name, 0)))
        newest = max((pos for found in places.values() for _, pos in found), default=0)
        return StoreSeen(
            path=self._path,
            bytes=_size(self._path),
            log_bytes=_size(self._path + "-wal"),
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
        listed = {n: run for run, n in by_index.rows if _is_name(run) and _is_number(n)}
        rows = [row for row in self._remains.rows("heads", listed) if _is_head(row)]
        if {row[0]: row[1] for row in rows} != listed:
            self._faults.append("the heads and their index do not name the same journals")
        return {row[1]: (row[2], row[3]) for row in rows}, {*listed.values(), *(row[1] for row in rows)}

    def _places(self, mark: Mark | None) -> tuple[dict[str, list[tuple[int, int]]], int]:
        """Where the records of each journal are, and how many rows are no records."""
        known = [pos for _, _, pos in self._remains.index("entries").rows if _is_number(pos)]
        found: dict[str, dict[int, tuple[int, int]]] = {}
        misfits = 0
        for row in self._remains.rows("entries", known, upto=mark.pos if mark is not None else 0):
            if _is_entry(row, _LIMIT):
                found.setdefault(row[1], {})[row[0]] = (row[2], row[0])
            else:
                misfits += 1
        return {run: sorted(places.values()) for run, places in found.items()}, misfits

    def _aside(self) -> dict[str, int]:
        counted: dict[str, int] = {}
        for row in {row[0]: row for row in self._remains.rows("quarantine") if _is_number(row[0])}.values():
            if _is_name(row[2]):
                counted[row[2]] = counted.get(row[2], 0) + 1
        return counted

    def _journal(
        self, name: str, places: list[tuple[int, int]], head: tuple[int, bytes] | None, quarantined: int
    ) -> JournalSeen:
        walk = _Walk(self, Sealer(self._store_id, name))
        for seq, pos in places:
            walk.step(seq, self.record(pos))
        walk.end(head)
        return JournalSeen(
            name=name,
            entries=len(places),
            valid=walk.valid,
            head=head[0] if head is not None and head[1] != LOST_HEAD else None,
            bad=walk.bad,
            beyond=walk.beyond,
            quarantined=quarantined,
            parts=tuple(walk.parts[:20]),
            parts_bad=len(walk.parts),
        )

    def record(self, pos: int) -> Record | None:
        rows = [row for row in self._remains.between("entries", pos, pos) if _is_entry(row, _LIMIT)]
        return Record(*rows[0][1:]) if rows else None

    def fetch(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        """Parts by name, as found; one that cannot be read is not there."""
        if len(self._parts) > _PARTS_KEPT:
            self._parts.clear()
        for name in ids:
            if name not in self._parts:
                rows: list[tuple[Any, ...]] = []
                self._remains.collect(
                    f"SELECT {', '.join(COLUMNS['parts'])} FROM parts WHERE id = ?",  # noqa: S608 - our names
                    (name,),
                    rows.append,
                )
                if rows and _is_part(rows[0]):
                    self._parts[name] = Part(*rows[0][1:])
        return {name: self._parts[name] for name in ids if name in self._parts}

    def place(self, record: Record) -> Place | None:
        """Where the bytes of a record are: in the log if it has them, since the log is newer."""
        needle = record.body if len(record.body) >= _NEEDLE else record.seal
        for suffix in ("-wal", ""):
            offset = _find(self._copy + suffix, needle)
            if offset >= 0:
                return Place(os.path.basename(self._path) + suffix, offset, 0 if suffix else offset // _PAGE + 1)
        return None

    def _reach(self, mark: Mark | None, newest: int, meta: dict[Any, Any]) -> str:
        """What is wrong between anchor and database; empty: the one reaches the other."""
        if mark is None:
            return self._anchor.why
        if mark.store != self._store_id:
            return "it belongs to another store than the database beside it"
        if newest < mark.pos:
            return f"it knows of record {mark.pos}, but the newest that can be read is {newest}: records are lost"
        there = self.record(mark.pos) if mark.pos else None
        rewritten = meta.get("rewritten")
        replaced = type(rewritten) is int and rewritten >= mark.pos
        if mark.pos and not replaced and (there is None or there.seal != mark.seal):
            return f"record {mark.pos} is not the one it knows" if there else f"record {mark.pos} cannot be read"
        return ""


class _Walk:
    """One journal, record by record."""

    def __init__(self, look: _Look, sealer: Sealer) -> None:
        self._look = look
        self._sealer = sealer
        self._last: tuple[int, bytes] = (0, GENESIS)
        self.valid = 0
        self.bad: Bad | None = None
        self.beyond = 0
        self.parts: list[PartSeen] = []

    def step(self, seq: int, record: Record | None) -> None:
        before, previous = self._last
        if record is None:
            self._blame(Bad(self.valid + 1, "its row cannot be read a second time"))
            return
        whole = seq == before + 1 and self._sealer.holds(record, previous)
        self._last = (seq, record.seal)
        if self.bad is not None:
            self.beyond += whole
        elif whole and self._can_be_read(record):
            self.valid += 1
        elif whole:
            self.beyond += 1
        elif seq > self.valid + 1:
            self._blame(Bad(self.valid + 1, f"it is missing; the next one found is {seq}"))
        else:
            why = "its seal does not hold" if seq == self.valid + 1 else f"there is a second entry {seq}"
            self._blame(Bad(self.valid + 1, f"{why} ({len(record.body)} bytes)", self._look.place(record)))

    def end(self, head: tuple[int, bytes] | None) -> None:
        if head is None or head[1] == LOST_HEAD:
            self._blame(Bad(self.valid + 1, "its head is missing, so nobody can say whether there was more"))
        elif head != self._last:
            self._blame(Bad(self.valid + 1, f"the journal ends at {self.valid}, but its head says {head[0]}"))

    def _blame(self, bad: Bad) -> None:
        self.bad = self.bad or bad

    def _can_be_read(self, record: Record) -> bool:
        """Whether what was sealed is an entry; and a look at the parts that it needs."""
        try:
            needed = references(from_record(record))
        except (SchemaMismatch, CodecMissing):
            return True  # written by a newer version: whole, but it says nothing to us
        except Stopped as error:
            why = f"its seal holds, but its body cannot be read: {error.__cause__}"
            self._blame(Bad(record.seq, why, self._look.place(record)))
            return False
        for reference in needed:
            try:
                bad = damaged_parts(reference, self._look.fetch)
            except Stopped as error:
                bad = {reference.digest: error.summary}
            self.parts += [PartSeen(record.seq, name.hex(), why) for name, why in bad.items()]
        return True


def _schema_problem(path: str, connection: apsw.Connection) -> str:
    try:
        number = connection.execute("PRAGMA application_id").get
        schema = sqlite_file._pairs(connection, "SELECT name, sql FROM sqlite_schema")
    except (apsw.Error, UnicodeDecodeError) as error:
        return str(error)
    if number != APPLICATION_ID and not schema.keys() & COLUMNS.keys():
        raise Damaged(
            f"{path}: a database of another program lies where a store was: the store's anchor is beside it.",
            cures=(("have the store?", "put it back, together with its -wal file"),),
        )
    return "" if sqlite_file.is_ours(schema) else "it is not what was written"


def _find(path: str, needle: bytes) -> int:
    with (
        contextlib.suppress(OSError, ValueError),  # there is no log, or nothing in it
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        return data.rfind(needle) if path.endswith("-wal") else data.find(needle)
    return -1


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
