"""What is in a file that may be damaged: a store, an anchor, a checkpoint that is kept as files.

The original is not changed. The file of a store is looked at in a copy, by its own kind (`sqlite/inspection.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from surefoot.core import generation
from surefoot.core.cure import Advice
from surefoot.errors import Damaged, NotFound, SchemaMismatch, Stopped, StoreUnavailable, UsageError
from surefoot.store import anchor as anchors
from surefoot.store import generation_files, generation_pages
from surefoot.store.anchor import Mark
from surefoot.store.sqlite.damaged_reader import BadPage, Gap
from surefoot.store.sqlite.schema import APPLICATION_ID

SQLITE: Final = b"SQLite format 3\0"
_LOG_MAGIC: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_NUMBER_AT: Final = 68

Watch = Callable[[str], object]


class FileOffset(Struct, frozen=True):
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
    place: FileOffset | None = None


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
    path = os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)  # its log is beside the real file
    shelves = _shelves(path)
    if shelves:
        return ShelvesSeen(path, tuple(_shelf(folder, number) for folder, number in shelves))
    start = first_bytes(path)
    if start.startswith(b"sfanchor") or (path.endswith("-anchor") and not start.startswith(SQLITE)):
        return anchor_seen(path)
    if start.startswith(_LOG_MAGIC) and path.endswith("-wal"):
        raise UsageError(f"{path} is the log of a SQLite database. Inspect {path.removesuffix('-wal')} instead.")
    if start.startswith(SQLITE):
        number = int.from_bytes(start[_NUMBER_AT : _NUMBER_AT + 4], "big")
        if number != APPLICATION_ID and not _has_anchor(path):
            raise _foreign(path, "a SQLite database of another program")
        return _into_store(path, watch)
    if _has_anchor(path):
        return _into_store(path, watch)  # it was a store: its first page is gone, or all of it
    if not start:
        raise _foreign(path, "an empty file")
    raise _foreign(path, "a text file" if _is_text(start) else "a file of some other program")


def _into_store(path: str, watch: Watch) -> StoreSeen:
    from surefoot.store.sqlite.inspection import look_into

    return look_into(path, watch)


def first_bytes(path: str, count: int = 4096) -> bytes:
    """The beginning of a plain file. Whatever else is there, or why it cannot be read, has an error of its own."""
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
                cures=(Advice("have a copy?", f"put {os.path.basename(path)} back, together with its -wal file"),),
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
    return os.path.isfile(path + "-anchor")


def _is_text(data: bytes) -> bool:
    try:
        return data[: len(data) - 3].decode("utf-8").isascii() or b"\0" not in data
    except UnicodeDecodeError:
        return False


# --- checkpoints as files ----------------------------------------------------------------------------


def _shelves(path: str) -> list[tuple[str, int]]:
    """The folders of checkpoints that a path names, each with the generation, if it names one (else 0)."""
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
    return generation_pages.FORMAT_NAME.match(first_bytes(path, 64)) is not None


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
    """The checkpoint's name: from the folder's name, or, if it was too long for that, from a generation."""
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


def anchor_seen(path: str) -> AnchorSeen:
    try:
        with open(path, "rb") as file:
            raw = file.read(2 * anchors._FILE_BYTES)
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


def newest_mark(seen: AnchorSeen) -> Mark | None:
    marks = [Mark(bytes.fromhex(slot.store), slot.pos, bytes.fromhex(slot.seal)) for slot in seen.slots if slot.holds]
    return max(marks, key=lambda mark: mark.pos, default=None)
