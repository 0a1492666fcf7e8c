"""One run in one file that proves itself: every record as it is stored, every part its values need, and a sum.

A file of JSON lines, plain ASCII, data only: a header, the records in order, the parts, and a last line with the
counts and the SHA-256 of all bytes before it. Every seal can be checked with the file alone, without the store.
A damaged run is refused, unless an export of the damage is requested; then the file records that.
"""

from __future__ import annotations

import binascii
import contextlib
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import IO, Final

import msgspec
from msgspec import Struct

from surefoot.core.audit import Audit
from surefoot.core.cure import NEWER_VERSION, Advice
from surefoot.core.forms import MAX_BYTES
from surefoot.core.parts import Part, Reference, damaged_parts, expand, fault, reachable
from surefoot.core.seal import Record, Sealer, from_record, references
from surefoot.engine.declare.plan import check_id
from surefoot.engine.drive.outcome import not_found
from surefoot.engine.process.whereabouts import in_its_store
from surefoot.engine.upkeep.verification import PartsSeen, batches, check, head_of
from surefoot.errors import (
    Damaged,
    JournalCorrupt,
    NotFound,
    SchemaMismatch,
    Stopped,
    StoreFull,
    StoreUnavailable,
    UsageError,
)
from surefoot.store import disk
from surefoot.store.contract import Head, Journals, Parts, Store
from surefoot.store.rules import is_run

FORMAT: Final = 1
_RUN: Final = "surefoot run"
_OTHER: Final = "surefoot journal"
_BATCH: Final = 256
_LONGEST_LINE: Final = 2 * MAX_BYTES
_LONGEST_HEADER: Final = 64 * 1024
_PARTS_KEPT: Final = 2000


class Exported(Struct, frozen=True):
    """The content of a file."""

    run: str
    store: str
    records: int
    parts: int
    bytes: int
    whole: bool
    """False: the run was damaged when it was exported, and the file records how far it is valid."""
    valid: int
    """The number of records, from the first on, that are whole with all their values."""


Write = Callable[[bytes], object]


# --- the lines -------------------------------------------------------------------------------------------


class _Strict(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Written and read in this order."""


class _Header(_Strict):
    format: int
    what: str
    store: str
    run: str
    head: dict[str, int | str] | None
    whole: bool


class _Record(_Strict, kw_only=True):
    seq: int
    epoch: int
    at: int
    kind: int
    schema: int
    codec: int
    key: int
    body: str | None = None
    body64: str | None = None
    """Replaces `body` if that is not UTF-8."""
    seal: str


class _PartLine(_Strict):
    id: str
    kind: int
    codec: int
    size: int
    body64: str


class _End(_Strict):
    records: int
    parts: int
    whole: bool
    valid: int
    sha256: str


class _Line(_Strict):
    header: _Header | None = None
    record: _Record | None = None
    part: _PartLine | None = None
    end: _End | None = None


# --- writing ---------------------------------------------------------------------------------------------


@in_its_store
def export(store: Store, run: str, write: Write, *, damaged: bool = False) -> Exported:
    """Pass the lines of an export to `write`: of a run, or of another journal by its full name (a thread)."""
    if is_run(run):
        check_id(run)
    stored = head_of(store, run)
    seen = check(store, run, PartsSeen(store))
    if stored is None and not seen.entries and not store.read(run, 0, 1).records:
        raise not_found(run, store.url)
    if seen.flaw is not None and not damaged:
        raise seen.flaw.error()
    out, whole = _Lines(write), seen.flaw is None
    head: dict[str, int | str] | None = None if stored is None else {"seq": stored.seq, "seal": stored.seal.hex()}
    out.line(_Line(header=_Header(FORMAT, _RUN if is_run(run) else _OTHER, store.id.hex(), run, head, whole)))
    upto = stored.seq if stored is not None and whole else None
    needed, valid = _records(store, run, upto, out, damaged=not whole)
    missing = _parts(store, needed, out)
    if whole and (stored is None or valid != stored or missing):
        raise _changed(run)
    out.end(whole=whole, valid=min(valid.seq, seen.entries))
    return Exported(run, store.id.hex(), out.records, out.parts, out.bytes, whole, out.valid)


def export_to(store: Store, run: str, path: str, *, damaged: bool = False) -> Exported:
    """The same into a file that exists whole or not at all. An existing file is not overwritten."""
    real, own = os.path.realpath(path), store.file
    if os.path.lexists(path) or (own and (real == own or real.startswith(own + "-"))):
        raise UsageError(f"{path} is there already, or belongs to the store, and is not written over. Name another.")
    unfinished = f"{path}.{secrets.token_hex(4)}.partial"
    try:
        with os.fdopen(disk.create(unfinished), "wb", buffering=1 << 20) as file:
            made = export(store, run, file.write, damaged=damaged)
            file.flush()
            os.fsync(file.fileno())
        os.rename(unfinished, path)
        disk.sync_name(os.path.abspath(path))
    except OSError as error:
        kind = StoreFull if error.errno in disk.FULL else StoreUnavailable
        raise kind(f"{path}: cannot be written: {error.strerror}. Nothing is left of it.") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
    return made


class _Lines:
    """Counts and hashes the written lines."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._sum = sha256()
        self.records = 0
        self.parts = 0
        self.bytes = 0
        self.valid = 0

    def line(self, content: _Line) -> None:
        plain = msgspec.to_builtins(content, builtin_types=[bytes])  # Bytes in a wrong place are refused below.
        line = json.dumps(plain, separators=(",", ":")).encode("ascii") + b"\n"
        self._sum.update(line)
        self.bytes += len(line)
        self._write(line)

    def end(self, *, whole: bool, valid: int) -> None:
        self.valid = valid
        self.line(_Line(end=_End(self.records, self.parts, whole, valid, self._sum.hexdigest())))


def _records(
    store: Journals, run: str, upto: int | None, out: _Lines, *, damaged: bool
) -> tuple[list[Reference], Head]:
    """Write the records. Returns the values that they need, and up to where they hold."""
    audit = Audit(Sealer(store.id, run), read=from_record, behind=from_record)
    needed: list[Reference] = []
    for record in _stored(store, run, upto, damaged=damaged):
        entry = audit.take(record)
        if audit.found is not None and not damaged:
            raise _changed(run)
        out.line(_Line(record=_record(record)))
        out.records += 1
        if entry is not None:  # nothing else is decoded: a record that does not hold is passed on unchanged
            needed += references(entry)
    return needed, Head(*audit.end)


def _changed(run: str) -> JournalCorrupt:
    return JournalCorrupt(
        f"run {run}: it was rewritten while it was exported.", run_id=run, cures=(Advice("now", "export it again"),)
    )


def _stored(store: Journals, run: str, upto: int | None, *, damaged: bool) -> Iterator[Record]:
    for stored in batches(store, run):
        if not isinstance(stored, JournalCorrupt):
            yield from (record for record in stored.records if upto is None or record.seq <= upto)
        elif not damaged:
            raise stored


def _record(record: Record) -> _Record:
    try:
        body = {"body": record.body.decode("utf-8")}
    except UnicodeDecodeError:
        body = {"body64": _base64(record.body)}
    return _Record(
        seq=record.seq, epoch=record.epoch, at=record.at, kind=record.kind, schema=record.schema, codec=record.codec,
        key=record.key, seal=record.seal.hex(), **body,
    )  # fmt: skip


def _parts(store: Parts, needed: Sequence[Reference], out: _Lines) -> int:
    """Write the parts that these values need. Returns how many are missing."""
    names: set[bytes] = set()

    def fetch(ids: Sequence[bytes]) -> dict[bytes, Part]:
        names.update(ids)
        return store.parts(ids)

    try:
        names |= reachable(needed, store.parts)
    except Damaged:
        for reference in needed:
            with contextlib.suppress(Damaged):
                damaged_parts(reference, fetch)
    wanted = sorted(names)
    for at in range(0, len(wanted), _BATCH):
        for part in store.parts(wanted[at : at + _BATCH]).values():
            with contextlib.suppress(TypeError, AttributeError):  # a damaged row of the wrong types is left out
                line = _PartLine(part.id.hex(), part.kind, part.codec, part.size, _base64(part.body))
                out.line(_Line(part=line))
                out.parts += 1
    return len(wanted) - out.parts


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


_from_base64: Final = partial(binascii.a2b_base64, strict_mode=True)


# --- checking ----------------------------------------------------------------------------------------------


_decode: Final = msgspec.json.Decoder(_Line).decode


def check_file(path: str) -> Exported:
    """Check an export by itself, without a store. Raises JournalCorrupt if it does not hold."""
    try:
        with _plain(path) as file:
            return _Check(path, file).file()
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}.") from error
    except OSError as error:
        raise StoreUnavailable(f"{path}: cannot be read: {error.strerror}.") from error


class Contents(Struct, frozen=True):
    """A file that was checked, with all that is in it."""

    exported: Exported
    records: list[Record]
    parts: dict[bytes, Part]


def read_file(path: str) -> Contents:
    """As `check_file`, and what is in it."""
    try:
        with _plain(path) as file:
            reader = _Reader(path, file)
            return Contents(reader.file(), reader.records, reader.parts)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}.") from error
    except OSError as error:
        raise StoreUnavailable(f"{path}: cannot be read: {error.strerror}.") from error


def read_bytes(where: str, data: bytes) -> Contents:
    """The same for a file that came from elsewhere."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        file.seek(0)
        reader = _Reader(where, file)
        return Contents(reader.file(), reader.records, reader.parts)


class _Check:
    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        """Data added from now on is not read."""
        self._number = 0
        self._sum = sha256()
        self._bytes = 0
        self._last = (0, 0)
        """The start and the length of the last line read."""
        self._records = 0
        self._audit = Audit(Sealer(b"", ""))
        self._needed: dict[Reference, int] = {}
        """Each value with the first entry that needs it."""
        self._places: dict[bytes, tuple[int, int]] = {}
        """The place in the file of a part's line, and its length."""
        self._fetched: dict[bytes, Part] = {}
        self._parts = 0

    def file(self) -> Exported:
        first = self._line(_LONGEST_HEADER)
        header = None if first is None else first.header
        if header is None or header.what not in (_RUN, _OTHER):
            raise UsageError(f"{self._path} is no export of a run.")
        if header.format > FORMAT:
            raise SchemaMismatch(
                f"{self._path} has format {header.format}, this version of surefoot knows up to {FORMAT}.",
                cures=(NEWER_VERSION,),
            )
        sealer = Sealer(self._bytes_of(header.store), header.run)
        self._audit = Audit(sealer, read=from_record, damage=(Stopped,))
        while True:
            so_far = self._sum.hexdigest()
            line = self._line(_LONGEST_LINE)
            if line is None:
                raise self._bad("it ends before its last line: it is cut off")
            if line.end is not None:
                return self._end(header, line.end, so_far)
            if line.record is not None and not self._parts:
                self._record(header.run, line.record, whole=header.whole)
            elif line.part is not None:
                self._part(line.part, whole=header.whole)
            else:
                raise self._bad("it is not the kind of line that belongs here")

    def _record(self, run: str, line: _Record, *, whole: bool) -> None:
        body = (line.body or "").encode() if line.body64 is None else self._bytes_of(line.body64, _from_base64)
        seal = self._bytes_of(line.seal)
        record = Record(
            run, line.seq, line.epoch, line.at, line.kind, line.schema, line.codec, line.key, body, seal
        )  # fmt: skip
        self._records += 1
        entry = self._audit.take(record)
        self._keep(record)
        broken = self._audit.found
        if broken is not None and whole:
            raise self._bad(f"entry {broken.entry}: {broken.why}")
        if entry is not None:
            for reference in references(entry):
                self._needed.setdefault(reference, record.seq)

    def _keep(self, found: Record | Part) -> None:
        """A check keeps nothing."""

    def _part(self, line: _PartLine, *, whole: bool) -> None:
        part = self._part_of(line)
        self._parts += 1
        self._keep(part)
        wrong = fault(part)
        if not wrong:
            self._places[part.id] = self._last
        elif whole:
            raise self._bad(f"part {line.id} {wrong}")

    def _end(self, header: _Header, end: _End, so_far: str) -> Exported:
        if self._bytes < self._size:
            raise self._bad("there is more behind its last line")
        if end.sha256 != so_far:
            raise self._bad("its sum is another one: a line was changed, added or lost")
        if (end.records, end.parts, end.whole) != (self._records, self._parts, header.whole):
            raise self._bad(f"it holds {self._records} records and {self._parts} parts, and says otherwise")
        if header.whole:
            seq, seal = self._audit.end
            if header.head != {"seq": seq, "seal": seal.hex()} or end.valid != seq:
                raise self._bad("the last record is not the one that the head names")
        valid = min(end.valid, self._audit.valid, self._whole_values(whole=header.whole))
        return Exported(header.run, header.store, self._records, self._parts, self._bytes, header.whole, valid)

    def _whole_values(self, *, whole: bool) -> int:
        """Join each value, to check its size and its digest. Returns the last entry before a bad one.

        Parts match their names, but a forged entry can name parts that do not form its value.
        """
        for reference, seq in self._needed.items():
            try:
                expand(reference, self._fetch)
            except Damaged as error:
                if whole:
                    why = error.summary.rstrip(".")
                    raise self._bad(f"a value of entry {seq} is not what was recorded: {why}") from error
                return seq - 1
        return self._audit.valid

    def _fetch(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        """Parts, read again from the file: all of them at once may not fit into memory."""
        if len(self._fetched) > _PARTS_KEPT:
            self._fetched.clear()
        known = {name: self._fetched[name] for name in ids if name in self._fetched}
        for name in ids:
            if name not in known and name in self._places:
                known[name] = self._fetched[name] = self._read_again(*self._places[name])
        return known

    def _read_again(self, offset: int, length: int) -> Part:
        self._file.seek(offset)
        try:
            line = _decode(self._file.read(length)).part
        except (msgspec.MsgspecError, ValueError, RecursionError):
            line = None
        if line is None:
            raise self._bad("the file was changed while it was read")
        return self._part_of(line)

    def _line(self, longest: int) -> _Line | None:
        raw = self._file.readline(min(longest, self._size - self._bytes))
        if not raw:
            return None
        self._number += 1
        try:
            line = _decode(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            if self._number == 1:
                raise UsageError(f"{self._path} is no export of a run: {error}.") from error
            raise self._bad(f"it cannot be read: {error}") from error
        if not raw.endswith(b"\n"):
            raise self._bad("it is cut off")
        if line.end is None:
            self._sum.update(raw)
        self._last = (self._bytes, len(raw))
        self._bytes += len(raw)
        return line

    def _bytes_of(self, text: str, decode: Callable[[str], bytes] = bytes.fromhex) -> bytes:
        try:
            return decode(text)
        except ValueError as error:
            raise self._bad(str(error)) from error

    def _part_of(self, line: _PartLine) -> Part:
        body = self._bytes_of(line.body64, _from_base64)
        return Part(self._bytes_of(line.id), line.kind, line.codec, line.size, body)

    def _bad(self, why: str) -> JournalCorrupt:
        return JournalCorrupt(
            f"{self._path}: line {self._number}: {why}. This is not what was exported.",
            facts={"line": self._number, "valid": self._audit.valid},
            cures=(Advice("still there?", "export it again from the store"),),
        )


class _Reader(_Check):
    """A check that keeps what it has read."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        super().__init__(path, file)
        self.records: list[Record] = []
        self.parts: dict[bytes, Part] = {}

    def _keep(self, found: Record | Part) -> None:
        if isinstance(found, Record):
            self.records.append(found)
        else:
            self.parts[found.id] = found


# --- files ---------------------------------------------------------------------------------------------------


def _plain(path: str) -> IO[bytes]:
    """A file to read. A pipe would block us, and a device has no end."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UsageError(f"{path} is no plain file, so it is no export of a run.")
    return os.fdopen(fd, "rb", buffering=1 << 16)
