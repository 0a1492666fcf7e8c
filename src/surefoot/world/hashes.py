"""The state of a file, as one text: the SHA-256 of its content, its size, and what else matters to its users.

    9f86d081…0a08 (4 bytes)                     the usual case
    9f86d081…0a08 (4 bytes, executable)         what its owner may do, where that is not reading and writing
    9f86d081…0a08 (4 bytes), link to ../b.txt   the content the link leads to, and where it leads

The permissions of others and all times are left out: they differ between machines and are no part of the content.
Times are used for one thing only, to notice that a file was changed while it was being read; then it is read again.

A file that this process has open is read through the descriptor it has. Opening and closing it once more would drop
every POSIX lock the process holds on it: SQLite's, for one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import queue
import re
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from surefoot.core.entry import ABSENT
from surefoot.world.base import NotObservable, Pulse
from surefoot.world.paths import GONE, is_there, shown

DIRECTORY: Final = "directory"
"""A directory is no file: `file()` refuses it, `files()` does not list it."""

_TRIES: Final = 5
_CHUNK: Final = 1024 * 1024
_UNSIZED: Final = 64 * _CHUNK
"""How much is read of a file that reports size 0 but is not empty (/proc)."""
_BATCH: Final = 64
_THREADS: Final = 4
_KINDS: Final = (
    (stat.S_ISDIR, DIRECTORY),
    (stat.S_ISFIFO, "fifo"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "character device"),
    (stat.S_ISBLK, "block device"),
)

_PLAIN: Final = re.compile(r"[0-9a-f]{64} \(\d+ bytes((?:, [^)]*)?)\)((?:, link to .*)?)", re.DOTALL)
_DANGLING: Final = re.compile(r"nothing(, link to .*)", re.DOTALL)

Held = dict[tuple[int, int], int]
"""Files that this process has open for reading: device and inode -> descriptor."""
_ours: Final[set[int]] = set()
"""Descriptors that a look has open now. They hold no locks, and are closed soon: they are not borrowed."""


class _Unrest(Exception):
    """The file changed while it was being read."""


def of_content(content: bytes, *, mode: int = 0o644) -> str:
    """The state of a plain file with this content."""
    return _text(sha256(content).hexdigest(), len(content), mode)


def written(before: str, content: bytes, found: str) -> str:
    """The state after this content replaced the one `before`: permissions and links stay.

    For a new file, permissions are taken from `found`, if that has the content.
    """
    mine = sha256(content).hexdigest()
    plain = _PLAIN.fullmatch(before)
    if plain is not None:
        return f"{mine} ({len(content)} bytes{plain[1]}){plain[2]}"
    is_mine = found.startswith(f"{mine} ({len(content)} bytes")
    dangling = _DANGLING.fullmatch(before)
    return found if is_mine else of_content(content) + (dangling[1] if dangling is not None else "")


def of_file(path: str, pulse: Pulse, held: Held | None = None) -> str:
    """The state of this path; `ABSENT` for nothing, `DIRECTORY` for a directory."""
    held = files_held() if held is None else held
    for _ in range(_TRIES):
        pulse.beat()
        try:
            return _of_path(path, pulse, held)
        except _Unrest:
            held = files_held()
        except OSError as error:
            if error.errno not in GONE:
                raise
            if not is_there(path):
                return ABSENT
    raise _restless(path)


def of_files(paths: list[str], pulse: Pulse) -> dict[str, str]:
    """Many files at once. No result if one of them cannot be read."""
    if len(paths) <= _BATCH:
        return _batch(paths, pulse)
    found: dict[str, str] = {}
    todo: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    answers: queue.SimpleQueue[dict[str, str] | BaseException] = queue.SimpleQueue()
    batches = [paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH)]
    for batch in batches:
        todo.put(batch)
    for _ in range(min(_THREADS, len(batches))):
        threading.Thread(target=_hash_batches, args=(todo, answers, pulse), daemon=True).start()
    for _ in batches:
        answer = answers.get()
        if isinstance(answer, BaseException):
            raise answer
        found |= answer
    return found


def files_held() -> Held:
    found: Held = {}
    try:
        numbers = os.listdir("/dev/fd")
    except OSError:
        return found
    for number in numbers:
        if int(number) in _ours:
            continue
        try:
            status = os.fstat(int(number))
            if stat.S_ISREG(status.st_mode) and fcntl.fcntl(int(number), fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY:
                found[status.st_dev, status.st_ino] = int(number)
        except OSError:
            continue  # closed meanwhile, as the one that listed them was
    return found


def first_bytes(path: str, count: int) -> bytes:
    """The beginning of a file, read with the same care for locks."""
    for _ in range(_TRIES):
        status = os.stat(path)
        try:
            with _descriptor(path, status, files_held()) as number:
                first = _read(number, count, 0)
                if _signature(_status(number)) == _signature(status):
                    return first
        except _Unrest:
            continue
    raise _restless(path)


def _hash_batches(
    todo: queue.SimpleQueue[list[str]], answers: queue.SimpleQueue[dict[str, str] | BaseException], pulse: Pulse
) -> None:
    while True:
        try:
            batch = todo.get_nowait()
        except queue.Empty:
            return
        try:
            answers.put(_batch(batch, pulse))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            answers.put(error)
            return


def _batch(paths: Iterable[str], pulse: Pulse) -> dict[str, str]:
    held = files_held()
    return {path: of_file(path, pulse, held) for path in paths}


def _of_path(path: str, pulse: Pulse, held: Held) -> str:
    status = os.lstat(path)
    if not stat.S_ISLNK(status.st_mode):
        return _of_target(path, status, pulse, held)
    to = os.readlink(path)
    try:
        seen = _of_target(path, os.stat(path), pulse, held)
    except OSError as error:
        if error.errno not in (*GONE, errno.ELOOP):
            raise
        seen = "nothing"
    if os.readlink(path) != to:
        raise _Unrest
    return f"{seen}, link to {shown(to)}"


def _of_target(path: str, status: os.stat_result, pulse: Pulse, held: Held) -> str:
    for is_kind, kind in _KINDS:
        if is_kind(status.st_mode):
            return kind
    with _descriptor(path, status, held) as number:
        return _of_descriptor(number, path, status, pulse)


@contextmanager
def _descriptor(path: str, status: os.stat_result, held: Held) -> Iterator[int]:
    borrowed = held.get((status.st_dev, status.st_ino))
    if borrowed is not None:
        yield borrowed
        return
    # If it has just become a fifo or a device: opening does not wait, and the descriptor shows it.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    _ours.add(number)
    try:
        yield number
    finally:
        _ours.discard(number)
        os.close(number)


def _of_descriptor(number: int, path: str, status: os.stat_result, pulse: Pulse) -> str:
    before = _signature(status)
    if _signature(_status(number)) != before:
        raise _Unrest
    digest, size = sha256(), 0
    while chunk := _read(number, _CHUNK, size):
        digest.update(chunk)
        size += len(chunk)
        pulse.beat()
        if size > (status.st_size or _UNSIZED):
            raise _Unrest
    # By number and by path: the file may have been written to, or replaced.
    if _signature(_status(number)) != before or _signature(os.stat(path)) != before:
        raise _Unrest
    return _text(digest.hexdigest(), size, status.st_mode)


def _read(number: int, count: int, offset: int) -> bytes:
    try:
        return os.pread(number, count, offset)
    except OSError as error:
        if error.errno in (errno.EBADF, errno.ESPIPE, errno.EISDIR):
            # Borrowed, and its owner has closed it; the number may now belong to another file.
            raise _Unrest from None
        raise


def _status(number: int) -> os.stat_result:
    try:
        return os.fstat(number)
    except OSError:  # as above
        raise _Unrest from None


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _restless(path: str) -> NotObservable:
    return NotObservable(f"{shown(path)} changes while it is being read ({_TRIES} attempts)")


def _text(digest: str, size: int, mode: int) -> str:
    notes = [f"{size} bytes"]
    if mode & stat.S_IXUSR:
        notes.append("executable")
    if not mode & stat.S_IRUSR:
        notes.append("not readable")
    if not mode & stat.S_IWUSR:
        notes.append("read-only")
    return f"{digest} ({', '.join(notes)})"
