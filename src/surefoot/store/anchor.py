"""A note of the journal's newest record, kept outside the journal, to detect lost history.

After each commit the position and the seal of the newest record go to a small side file. It is written after the
journal is durable, so it is never ahead of the journal. An anchor that is ahead of the journal proves that the
journal lost something (a deleted `-wal`, an older copy put back, an emptied file).

Two slots, each with its own checksum, are written in turn: a torn write damages one, and the other is still readable.
Writers of several processes take a lock, and write only a higher position.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
import zlib
from collections.abc import Iterator
from struct import Struct as Layout
from typing import Final, NamedTuple

from surefoot.core.cure import Advice
from surefoot.errors import JournalRegressed, StoreUnavailable
from surefoot.store import disk
from surefoot.store.failure import newer_format

FORMAT: Final = 1
NOTHING_SEAL: Final = bytes(32)
"""The seal an anchor carries before anything was appended."""

_MAGIC: Final = b"sfanchor"
_BODY: Final = Layout(">8sH16sQ32s")
_SUM: Final = Layout(">I")
_SLOT_BYTES: Final = _BODY.size + _SUM.size
_SECOND: Final = 512
"""The slots lie in different sectors: one torn sector cannot damage both."""
_FILE_BYTES: Final = _SECOND + _SLOT_BYTES
_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_PATIENCE_SECONDS: Final = 0.2


class Mark(NamedTuple):
    """The last position that the journal is known to have reached."""

    store: bytes
    pos: int
    seal: bytes


class Unreadable(Exception):
    """Neither slot is valid."""


class Anchor:
    """The open side file. Not thread-safe by itself: the store's writing lock covers it."""

    __slots__ = ("_fd", "_newest_is_second", "_raw", "newest", "path")

    def __init__(self, path: str, *, create: bool) -> None:
        """Open the file; with `create`, make it (empty) if it is missing. `FileNotFoundError` otherwise."""
        self.path = path
        self._fd = _open_private(path, create=create)
        self._raw = b""
        self._newest_is_second = False
        self.newest: Mark | None = None

    def read(self) -> Mark | None:
        """The newest mark; None for an empty file: its creator was cut off."""
        try:
            raw = os.pread(self._fd, _FILE_BYTES, 0)
        except OSError as error:
            raise StoreUnavailable(
                f"{self.path}: the anchor cannot be read ({error.strerror}). Nothing was changed. "
                "Look at the disk, then try again."
            ) from error
        if not raw:
            return None
        self._take(raw)
        return self.newest

    def intact(self) -> bool:
        """Whether both slots are valid."""
        return None not in _slots(self._raw)

    def begin(self, mark: Mark) -> None:
        """Write both slots and sync them, before the first record."""
        slot = _packed(mark)
        raw = slot.ljust(_SECOND, b"\0") + slot
        self._write(raw, 0)
        if os.fstat(self._fd).st_size > _FILE_BYTES:
            # Cut only now: a power cut may keep a file's new size and lose its content, and zeros are no anchor.
            os.ftruncate(self._fd, _FILE_BYTES)
        os.fsync(self._fd)
        self._raw, self.newest, self._newest_is_second = raw, mark, False

    def advance(self, mark: Mark) -> None:
        """Note a newer record. A record that is not newer than the noted one changes nothing.

        If another process holds the lock (stopped in the middle), the next commit writes the note: an anchor that
        is behind is harmless, a writer that hangs is not.
        """
        with self._locked(_PATIENCE_SECONDS) as is_ours:
            if not is_ours:
                return
            raw = os.pread(self._fd, _FILE_BYTES, 0)
            if raw != self._raw:
                with contextlib.suppress(Unreadable):  # damaged meanwhile: the known mark is written anew
                    self._take(raw)
            newest = self.newest
            if newest is not None and newest.store != mark.store:
                raise foreign(self.path)
            if newest is None or mark.pos > newest.pos:
                self._put(mark)

    def heal(self) -> None:
        """Write the newest mark over an invalid slot."""
        if self.newest is None:
            return
        with self._locked(_PATIENCE_SECONDS) as is_ours:
            if is_ours:
                self._take(os.pread(self._fd, _FILE_BYTES, 0))
                if not self.intact():
                    self._put(self.newest)

    @contextlib.contextmanager
    def creating(self, seconds: float) -> Iterator[None]:
        """Only one process makes the store; the others wait for it."""
        with self._locked(seconds) as is_ours:
            if not is_ours:
                raise StoreUnavailable(
                    f"{self.path}: another process has been creating this store for {seconds:g} s. "
                    "Wait for it, or end it, and try again."
                )
            yield

    def sync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        """Closing also releases the lock. The number is forgotten: it may soon name another file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    @contextlib.contextmanager
    def _locked(self, seconds: float) -> Iterator[bool]:
        """Whether the lock could be taken within that many seconds."""
        deadline = time.monotonic() + seconds
        while not (is_ours := disk.locked(self._fd, fcntl.LOCK_EX)) and time.monotonic() < deadline:
            time.sleep(0.001)
        try:
            yield is_ours
        finally:
            if is_ours:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _take(self, raw: bytes) -> None:
        self._raw = raw
        first, second = _slots(raw)
        if first is None and second is None:
            raise Unreadable
        self._newest_is_second = first is None or (second is not None and second.pos > first.pos)
        self.newest = second if self._newest_is_second else first

    def _put(self, mark: Mark) -> None:
        """Write over the slot that is not the newest, so that a torn write leaves the newest."""
        slot, at = _packed(mark), 0 if self._newest_is_second else _SECOND
        self._write(slot, at)
        self._raw = self._raw[:at].ljust(at, b"\0") + slot + self._raw[at + _SLOT_BYTES :]
        self._newest_is_second = not self._newest_is_second
        self.newest = mark

    def _write(self, data: bytes, offset: int) -> None:
        while data:
            written = os.pwrite(self._fd, data, offset)
            data, offset = data[written:], offset + written


def mark_at(path: str) -> Mark | None:
    """The mark of the anchor at this path; None: there is no anchor, or it is unreadable."""
    try:
        with contextlib.closing(Anchor(path, create=False)) as anchor:
            return anchor.read()
    except (FileNotFoundError, Unreadable):
        return None


def foreign(path: str) -> JournalRegressed:
    return JournalRegressed(
        f"{path}: this anchor belongs to another store than the database beside it.",
        facts={"anchor": path},
        cures=(Advice("mixed up?", "put the database and the anchor that belong together back side by side"),),
    )


def _open_private(path: str, *, create: bool) -> int:
    """Open for this user alone, whatever the umask; a symbolic link in this place is refused."""
    try:
        if not create:
            return os.open(path, _FLAGS)
        fd = os.open(path, _FLAGS | os.O_CREAT, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = "it is a symbolic link, which is refused here" if error.errno == errno.ELOOP else error.strerror
        raise StoreUnavailable(
            f"{path}: the store's anchor cannot be opened: {why}. It must be a file this user may read and write."
        ) from error
    if os.fstat(fd).st_size == 0:
        os.fchmod(fd, 0o600)
    return fd


def _packed(mark: Mark) -> bytes:
    body = _BODY.pack(_MAGIC, FORMAT, mark.store, mark.pos, mark.seal)
    return body + _SUM.pack(zlib.crc32(body))


def _slots(raw: bytes) -> tuple[Mark | None, Mark | None]:
    return _unpacked(raw[:_SLOT_BYTES]), _unpacked(raw[_SECOND:])


def _unpacked(slot: bytes) -> Mark | None:
    if len(slot) != _SLOT_BYTES or _SUM.unpack_from(slot, _BODY.size)[0] != zlib.crc32(slot[: _BODY.size]):
        return None
    magic, number, store, pos, seal = _BODY.unpack_from(slot)
    if magic != _MAGIC:
        return None
    if number > FORMAT:
        raise newer_format("the store's anchor", number, FORMAT)
    return Mark(store, pos, seal)
