"""Generations as files that a person can read: `NAME/7.json`, one per generation, whole or not there.

The content of a file, and how it is judged, is in `generation_pages.py`. A file is written under another name, synced,
and renamed, and its folder is synced. The note, `NAME/newest`, is written after the generation it names, so it is never
ahead.

A process that saves holds `NAME/lock` alone; readers share it. All names are opened relative to the open folder, and links
are not followed. Damaged files are moved to `NAME/damaged/`, for people to inspect.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Final
from urllib.parse import unquote, urlsplit

from surefoot.core.generation import Saved, Seen, Shelved
from surefoot.errors import StoreFull, StoreUnavailable, UsageError
from surefoot.store import disk
from surefoot.store.generation_pages import (
    HASH,
    MAX_FILE,
    NO_NOTE,
    Bad,
    Blob,
    Page,
    Pages,
    Prepared,
    check_blob,
    inflated,
)

_GENERATION: Final = re.compile(r"([1-9][0-9]{0,17})\.json", re.ASCII)
_SET_ASIDE: Final = re.compile(r"([1-9][0-9]{0,17})\..*", re.ASCII)
_NOTE: Final = "newest"
_LOCK: Final = "lock"
_BLOBS: Final = "blobs"
_DAMAGED: Final = "damaged"
_TEMPORARY: Final = ".tmp-"
_SAFE: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_LONGEST_NAME: Final = 200

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in this place must not block us
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATIENCE_SECONDS: Final = 10.0
_BAD_FILE: Final = (errno.ELOOP, errno.EISDIR, errno.ENXIO)
"""Something else is in the place of our file. Not EIO: a file that is unreadable now is not damaged."""


def folder_of(url: str) -> str:
    """The folder that a `file:` URL names: `file:///absolute`, or `file:relative` to the working folder."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not path.strip("/") or "\0" in path:
        raise UsageError(
            f"{url!r} names no folder for checkpoints. Write file:///absolute/folder or file:folder "
            "(a ? or # in its name is written %3F or %23)."
        )
    return os.path.abspath(path if path.startswith("/") else os.path.join(os.getcwd(), path))


def file_name(name: str) -> str:
    """The name of a checkpoint's folder: different for each checkpoint, and never outside the root."""
    raw = name.encode("utf-8")
    safe = "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in raw)
    if safe.startswith("."):
        safe = "%2E" + safe[1:]
    if safe.lower().endswith(".json"):  # only generations end so
        safe = safe[:-5] + "%2E" + safe[-4:]
    if len(safe) > _LONGEST_NAME:
        safe = f"{safe[:100]}%~{hashlib.sha256(raw).hexdigest()}"
    return safe


class FileShelf:
    """The generations of one checkpoint in a folder. Nothing is kept open between calls."""

    def __init__(self, folder: str, name: str) -> None:
        self.root = folder
        self.where = os.path.join(folder, file_name(name))
        self._name = name
        self._pages = Pages(name, self.where)
        self._held: int | None = None

    # --- the folder and its lock -------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the folder's lock alone. Makes the folder if needed."""
        with ExitStack() as stack:
            with self._explained():
                disk.make_folder(self.where)
                folder = self._found_folder()
                stack.callback(os.close, folder)
                lock = self._lock(folder, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
                stack.callback(os.close, lock)
                self._sweep(folder)
                with suppress(FileNotFoundError), _subfolder(_BLOBS, folder, make=False) as blobs:
                    self._sweep(blobs)
            self._held = folder
            try:
                yield
            finally:
                self._held = None

    @contextmanager
    def _open(self) -> Iterator[int | None]:
        """The folder for reading, with other readers; None if there is none. Reading creates nothing."""
        if self._held is not None:
            yield self._held
            return
        with ExitStack() as stack:
            with self._explained():
                try:
                    folder = self._found_folder()
                except FileNotFoundError:
                    folder = None
                if folder is not None:
                    stack.callback(os.close, folder)
                    with suppress(FileNotFoundError):
                        stack.callback(os.close, self._lock(folder, os.O_RDONLY, fcntl.LOCK_SH))
            yield folder

    def _found_folder(self) -> int:
        root = os.open(self.root, _FOLDER)
        try:
            return os.open(os.path.basename(self.where), _FOLDER | os.O_NOFOLLOW, dir_fd=root)
        finally:
            os.close(root)

    def _lock(self, folder: int, flags: int, kind: int) -> int:
        """The open lock file, locked. The system unlocks it if we die."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            lock = os.open(_LOCK, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
            if disk.locked(lock, kind) and _same(lock, _LOCK, folder):
                return lock
            os.close(lock)
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"{self.where}: another process has been saving here for {_PATIENCE_SECONDS:g} s. "
                    "Wait for it, or end it, and try again."
                )
            time.sleep(0.002)

    def _sweep(self, folder: int) -> None:
        """Remove what a killed process was writing. We hold the lock, so no process is writing it now."""
        for name in os.listdir(folder):
            if name.startswith(_TEMPORARY):
                with suppress(OSError):  # not ours, or not removable: no harm
                    os.unlink(name, dir_fd=folder)

    # --- reading -----------------------------------------------------------------------------------------

    def look(self) -> Shelved | None:
        """All that is stored, each file judged. None only if nothing was ever saved."""
        with self._open() as folder:
            if folder is None:
                return None
            with self._explained():
                return self._look(folder)

    def _look(self, folder: int) -> Shelved | None:
        numbers = _numbers(_GENERATION, folder)
        note, doubt = self._note(folder)
        aside = _set_aside(folder)
        if not numbers and note is None and not aside:
            return None if doubt == NO_NOTE else Shelved([], 0, b"?", doubt)
        return self._pages.shelved(numbers, aside, note or {}, doubt, partial(_read_page, folder))

    def _note(self, folder: int) -> tuple[dict[int, str] | None, str]:
        """The noted generations with their seals, and what is wrong with the note."""
        try:
            raw = _read_file(_NOTE, folder, MAX_FILE)
        except FileNotFoundError:
            return None, NO_NOTE
        except Bad as error:
            return None, f"the note of the newest generation cannot be read ({error})"
        try:
            return self._pages.noted(raw), ""
        except Bad:
            return None, "the note of the newest generation is damaged"

    def check(self, seen: Seen) -> None:
        """Read all parts of a sound generation. `Damaged` if it is not whole."""
        self.state(seen)

    def state(self, seen: Seen) -> bytes:
        """The state of a sound generation, whole. `Damaged` if it cannot be read whole."""
        page: Page = seen.source[0]
        if page.blob is None:
            return bytes(page.state)
        why = "it is missing"
        with self._open() as folder, self._explained(), suppress(FileNotFoundError):
            try:
                if folder is not None:
                    return inflated(_blob_body(folder, page.blob), page.blob)
            except Bad as error:
                why = str(error)
        raise self._pages.lost_state(seen, f"{_BLOBS}/", why)

    def adopted_since(self, found: Shelved | None) -> bool:
        """Always false: files are in no store that could be adopted."""
        return False

    # --- saving ------------------------------------------------------------------------------------------

    def prepare(self, found: Shelved | None, new: Saved, kept: Sequence[Seen] | None) -> Prepared:
        return self._pages.prepare(found, new, kept)

    def write(self, prepared: Prepared) -> bool:
        """Write it durably, read it back whole, only then note it. We hold the lock: no other process interferes."""
        folder = self._held
        if folder is None:
            raise AssertionError("a generation is saved while the folder is held")
        with self._explained():
            if prepared.blob is not None:
                self._put_blob(folder, prepared.blob, prepared.state)
            _put_file(f"{prepared.number}.json", prepared.page, folder)
            self._pages.require_same(prepared, partial(_read_page, folder), self.state)
            kept = {one.number: one.source[1] for one in prepared.kept} | {prepared.number: prepared.mark.decode()}
            _put_file(_NOTE, self._pages.note(kept), folder)
            self._clear(folder, prepared, kept)
        return True

    def _put_blob(self, folder: int, blob: Blob, state: bytes) -> None:
        """Written before the page that refers to it. The same state is kept once, if the kept file is still sound."""
        with suppress(Bad, OSError):
            if inflated(_blob_body(folder, blob), blob) == state:
                return
        with _subfolder(_BLOBS, folder) as blobs:
            _put_file(blob.sha256, zlib.compress(state), blobs)

    def _clear(self, folder: int, prepared: Prepared, kept: dict[int, str]) -> None:
        """Delete the generations that may be deleted, and move the damaged ones away."""
        oldest = min(kept)
        for one in prepared.found:
            if one.number in kept:
                continue
            with suppress(FileNotFoundError):
                if one.sound and one.number < oldest:
                    os.unlink(f"{one.number}.json", dir_fd=folder)
                else:
                    with _subfolder(_DAMAGED, folder) as damaged:
                        name = f"{one.number}.{secrets.token_hex(4)}"
                        os.rename(f"{one.number}.json", name, src_dir_fd=folder, dst_dir_fd=damaged)
                        os.fsync(damaged)
        os.fsync(folder)
        self._collect(folder)

    def _collect(self, folder: int) -> None:
        """Delete blobs that no file here names: neither a generation nor the rest of a damaged one."""
        # There may be no blobs. And if a file's references are unknown, nothing is deleted.
        with suppress(FileNotFoundError, Bad), _subfolder(_BLOBS, folder, make=False) as blobs:
            named = _named_blobs(folder)
            for name in os.listdir(blobs):
                if HASH.fullmatch(name.encode()) and name.encode() not in named:
                    os.unlink(name, dir_fd=blobs)

    # --- when the system refuses -----------------------------------------------------------------------------

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in disk.FULL:
                raise StoreFull(
                    f"{self.where}: there is no space for checkpoint {self._name} ({error.strerror}). "
                    "What was saved before is as it was."
                ) from error
            why = "a symbolic link is in the way, which is refused" if error.errno == errno.ELOOP else error.strerror
            raise StoreUnavailable(
                f"{self.where}: checkpoint {self._name} cannot be read or written: {why or error}. "
                "It must be a folder that this user may read and write."
            ) from error


# --- blobs -------------------------------------------------------------------------------------


def _blob_body(folder: int, blob: Blob) -> bytes:
    limit = check_blob(blob)
    with _subfolder(_BLOBS, folder, make=False) as blobs:
        return _read_file(blob.sha256, blobs, limit)


def _named_blobs(folder: int) -> set[bytes]:
    named: set[bytes] = set()
    for name in os.listdir(folder):
        if _GENERATION.fullmatch(name):
            named.update(HASH.findall(_read_file(name, folder, MAX_FILE)))
    with suppress(FileNotFoundError), _subfolder(_DAMAGED, folder, make=False) as damaged:
        for name in os.listdir(damaged):
            with suppress(Bad):  # Not our file, so it names nothing. An unreadable file may name a blob.
                named.update(HASH.findall(_read_file(name, damaged, MAX_FILE)))
    return named


# --- files -----------------------------------------------------------------------------------------------


def _numbers(pattern: re.Pattern[str], folder: int) -> list[int]:
    return [int(found[1]) for name in os.listdir(folder) if (found := pattern.fullmatch(name))]


def _set_aside(folder: int) -> list[int]:
    """The numbers of generations that were moved away. They are not used again."""
    with suppress(FileNotFoundError), _subfolder(_DAMAGED, folder, make=False) as damaged:
        return _numbers(_SET_ASIDE, damaged)
    return []


@contextmanager
def _subfolder(name: str, folder: int, *, make: bool = True) -> Iterator[int]:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
            os.fsync(folder)
    opened = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield opened
    finally:
        os.close(opened)


def _read_page(folder: int, number: int) -> bytes:
    return _read_file(f"{number}.json", folder, MAX_FILE)


def _read_file(name: str, folder: int, limit: int) -> bytes:
    """A file of ours. `Bad`, if something else is in its place."""
    try:
        fd = os.open(name, _READ, dir_fd=folder)
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise Bad("it is not a regular file")
            if info.st_size > limit:
                raise Bad(f"it has {info.st_size} bytes, more than it can have")
            with os.fdopen(fd, "rb", closefd=False) as file:
                return file.read(limit + 1)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno not in _BAD_FILE:
            raise
        raise Bad(f"its file cannot be read ({error.strerror})") from error


def _put_file(name: str, content: bytes, folder: int) -> None:
    """Write all of it under this name, or nothing, even when the power fails."""
    temporary = _TEMPORARY + secrets.token_hex(8)
    fd = os.open(temporary, _CREATE, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def _same(lock: int, name: str, folder: int) -> bool:
    """Whether the file we locked still has that name. If not, another process may lock a new file of that name."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(lock), there)
