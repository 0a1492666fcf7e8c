"""Generations as files that a person can read: `NAME/7.json`, one per generation, whole or not there.

What is in a file, and how it is judged, is in `generation_pages.py`. A file is written under another name, synced, renamed,
and its folder synced. The note, `NAME/newest`, is written after the generation it names: it is never ahead of what is there.

Whoever saves holds `NAME/lock`, alone; whoever reads holds it with other readers. All names are opened relative to
the open folder and links are not followed. What was damaged is moved to `NAME/damaged/`, out of the way and at hand.
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
from typing import Final, NoReturn
from urllib.parse import unquote, urlsplit

from surefoot.core.cure import command
from surefoot.core.generation import Saved, Seen, Shelved
from surefoot.errors import (
    CorruptCheckpoint,
    JournalCorrupt,
    StoreFull,
    StoreUnavailable,
    UsageError,
)
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

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in this place must not hang us
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATIENCE_SECONDS: Final = 10.0
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BAD_FILE: Final = (errno.ELOOP, errno.EISDIR, errno.ENXIO)
"""There is something else in the place of a file of ours. Not EIO: what cannot be read now is not damaged."""


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
    """A folder's name for a checkpoint's name: one for each, and none that leads anywhere else."""
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
        """Alone with the folder, which is made if need be."""
        with ExitStack() as stack:
            with self._explained():
                folder = self._made_folder()
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

    def _made_folder(self) -> int:
        with suppress(FileNotFoundError):
            return self._found_folder()
        for path in _missing(self.where):
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
            _sync_folder(os.path.dirname(path))
        return self._found_folder()

    def _lock(self, folder: int, flags: int, kind: int) -> int:
        """The open lock file, locked. The system unlocks it if we die."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            lock = os.open(_LOCK, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
            if _locked(lock, kind) and _same(lock, _LOCK, folder):
                return lock
            os.close(lock)
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"{self.where}: another process has been saving here for {_PATIENCE_SECONDS:g} s. "
                    "Wait for it, or end it, and try again."
                )
            time.sleep(0.002)

    def _sweep(self, folder: int) -> None:
        """Remove what a killed process was writing. We are alone, so nobody is writing it now."""
        for name in os.listdir(folder):
            if name.startswith(_TEMPORARY):
                with suppress(OSError):  # not ours, or not to be had: it is in nobody's way
                    os.unlink(name, dir_fd=folder)

    # --- reading -----------------------------------------------------------------------------------------

    def look(self) -> Shelved | None:
        """What is there, each file judged. None only if nothing was ever saved."""
        with self._open() as folder:
            if folder is None:
                return None
            with self._explained():
                return self._look(folder)

    def _look(self, folder: int) -> Shelved | None:
        numbers = _numbers(os.listdir(folder))
        note, doubt = self._note(folder)
        aside = _set_aside(folder)
        if not numbers and note is None and not aside:
            return None if doubt == NO_NOTE else Shelved([], 0, b"?", doubt)
        return self._pages.shelved(numbers, aside, note or {}, doubt, partial(_read_page, folder))

    def _note(self, folder: int) -> tuple[dict[int, str] | None, str]:
        """The noted generations with their seals, and what is wrong with the note."""
        try:
            raw = _read(_NOTE, folder, MAX_FILE)
        except FileNotFoundError:
            return None, NO_NOTE
        except Bad as error:
            return None, f"the note of the newest generation cannot be read ({error})"
        try:
            return self._pages.noted(raw), ""
        except Bad:
            return None, "the note of the newest generation is damaged"

    def check(self, seen: Seen) -> None:
        """Read all that a sound generation consists of. `Damaged` if it is not whole."""
        self.state(seen)

    def state(self, seen: Seen) -> bytes:
        """The state of a sound generation, whole. `Damaged` if that is not to be had."""
        page: Page = seen.source[0]
        if page.blob is None:
            return bytes(page.state)
        with self._open() as folder, self._explained():
            if folder is None:
                raise self._bad_blob(seen.number, "it is missing")
            try:
                return inflated(_blob_body(folder, page.blob), page.blob)
            except FileNotFoundError:
                raise self._bad_blob(seen.number, "it is missing") from None
            except Bad as error:
                raise self._bad_blob(seen.number, str(error)) from error

    def _bad_blob(self, number: int, why: str) -> JournalCorrupt:
        return JournalCorrupt(
            f"checkpoint {self._name}: the state of generation {number} in {_BLOBS}/ is damaged: {why}.",
            facts={"why": why},
        )

    def adopted_since(self, found: Shelved | None) -> bool:
        """Files are in no store that could be adopted."""
        return False

    # --- saving ------------------------------------------------------------------------------------------

    def prepare(self, found: Shelved | None, new: Saved, kept: Sequence[Seen] | None) -> Prepared:
        return self._pages.prepare(found, new, kept)

    def write(self, prepared: Prepared) -> bool:
        """Durable, read back whole, and only then noted. We are alone, so nobody can come between."""
        folder = self._held
        if folder is None:
            raise AssertionError("a generation is saved while the folder is held")
        with self._explained():
            if prepared.blob is not None:
                self._put_blob(folder, prepared.blob, prepared.state)
            _put_file(f"{prepared.number}.json", prepared.page, folder)
            self._read_back(folder, prepared)
            kept = {one.number: one.source[1] for one in prepared.kept} | {prepared.number: prepared.mark.decode()}
            _put_file(_NOTE, self._pages.note(kept), folder)
            self._clear(folder, prepared, kept)
        return True

    def _put_blob(self, folder: int, blob: Blob, state: bytes) -> None:
        """Before the page that refers to it; the same state is kept once, if it is still what it was."""
        with suppress(Bad, OSError):
            if inflated(_blob_body(folder, blob), blob) == state:
                return
        with _subfolder(_BLOBS, folder) as blobs:
            _put_file(blob.sha256, zlib.compress(state), blobs)

    def _read_back(self, folder: int, prepared: Prepared) -> None:
        one = self._pages.judge(prepared.number, {}, set(), partial(_read_page, folder))
        why = one.why
        if not why:
            try:
                why = "" if self.state(one) == prepared.state else "other bytes came back"
            except JournalCorrupt as error:
                why = error.summary
        if why:
            raise CorruptCheckpoint(
                f"checkpoint {self._name}: generation {prepared.number} was written to {self.where}, but does not read "
                f"back: it {why}. The older generations are as they were.",
                facts={"checkpoint": self._name, "generation": prepared.number, "why": why},
                cures=(command("doctor", when="the disk?"),),
            )

    def _clear(self, folder: int, prepared: Prepared, kept: dict[int, str]) -> None:
        """Delete the generations that may go, and move away those that are damaged."""
        oldest = min(kept)
        for one in prepared.found:
            if one.number in kept:
                continue
            with suppress(FileNotFoundError):
                if one.sound and one.number < oldest:
                    os.unlink(f"{one.number}.json", dir_fd=folder)
                else:
                    _set_aside_file(one.number, folder)
        _sync(folder)
        self._collect(folder)

    def _collect(self, folder: int) -> None:
        """Delete blobs that no file here names: neither a generation nor what is left of a damaged one."""
        try:
            blobs = os.open(_BLOBS, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        except FileNotFoundError:
            return
        try:
            try:
                named = _named_blobs(folder)
            except Bad:
                return  # what it needs is not known, so nothing goes
            for name in os.listdir(blobs):
                if HASH.fullmatch(name.encode()) and name.encode() not in named:
                    os.unlink(name, dir_fd=blobs)
        finally:
            os.close(blobs)

    # --- when the system refuses -----------------------------------------------------------------------------

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._explain(error)

    def _explain(self, error: OSError) -> NoReturn:
        if error.errno in _FULL:
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
    blobs = os.open(_BLOBS, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    try:
        return _read(blob.sha256, blobs, limit)
    finally:
        os.close(blobs)


def _named_blobs(folder: int) -> set[bytes]:
    named: set[bytes] = set()
    for name in os.listdir(folder):
        if _GENERATION.fullmatch(name):
            named.update(HASH.findall(_read_file(name, folder, MAX_FILE)))
    with suppress(FileNotFoundError), _subfolder(_DAMAGED, folder, make=False) as damaged:
        for name in os.listdir(damaged):
            try:
                named.update(HASH.findall(_read_file(name, damaged, MAX_FILE)))
            except Bad:
                pass  # Nothing of ours, so it names nothing.
            except OSError as error:
                if error.errno not in _BAD_FILE:
                    raise  # It may name a blob, which would be deleted.
    return named


# --- files -----------------------------------------------------------------------------------------------


def _numbers(names: list[str]) -> list[int]:
    return [int(found[1]) for name in names if (found := _GENERATION.fullmatch(name))]


def _set_aside(folder: int) -> list[int]:
    """The numbers of generations that were moved away. They are not given again."""
    try:
        with _subfolder(_DAMAGED, folder, make=False) as damaged:
            names = os.listdir(damaged)
    except FileNotFoundError:
        return []
    return [int(found[1]) for name in names if (found := _SET_ASIDE.fullmatch(name))]


def _set_aside_file(number: int, folder: int) -> None:
    with _subfolder(_DAMAGED, folder) as damaged:
        name = f"{number}.{secrets.token_hex(4)}"
        os.rename(f"{number}.json", name, src_dir_fd=folder, dst_dir_fd=damaged)
        _sync(damaged)


@contextmanager
def _subfolder(name: str, folder: int, *, make: bool = True) -> Iterator[int]:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
            _sync(folder)
    opened = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield opened
    finally:
        os.close(opened)


def _read_page(folder: int, number: int) -> bytes:
    return _read(f"{number}.json", folder, MAX_FILE)


def _read(name: str, folder: int, limit: int) -> bytes:
    """A file of ours. `Bad`, if something else is in its place."""
    try:
        return _read_file(name, folder, limit)
    except OSError as error:
        if error.errno not in _BAD_FILE:
            raise
        raise Bad(f"its file cannot be read ({error.strerror})") from error


def _read_file(name: str, folder: int, limit: int) -> bytes:
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


def _put_file(name: str, content: bytes, folder: int) -> None:
    """All of it under this name, or none: also when the power fails."""
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
    _sync(folder)


def _sync(folder: int) -> None:
    os.fsync(folder)


def _sync_folder(path: str) -> None:
    fd = os.open(path, _FOLDER)
    try:
        _sync(fd)
    finally:
        os.close(fd)


def _missing(path: str) -> list[str]:
    """The folders to make, the outermost first."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing[::-1]


def _locked(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same(lock: int, name: str, folder: int) -> bool:
    """Whether the file we locked is still the one of that name: else somebody else may lock another."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(lock), there)
