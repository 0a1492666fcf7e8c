"""Files and folders on disk: made for this user alone, and durable once their folder is synced.

Never used on a SQLite database that this process has open: closing a descriptor of it would drop SQLite's locks.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import Final

FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers that mean: no space left."""

_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def create(path: str) -> int:
    """A new, empty file for this user alone, whatever the umask; opened for reading and writing."""
    fd = os.open(path, _NEW, 0o600)
    os.fchmod(fd, 0o600)
    return fd


def make_folder(path: str) -> None:
    """Missing folders are made for this user alone, whatever the umask. Existing ones stay as they are."""
    if os.path.isdir(path):
        return
    make_folder(os.path.dirname(path))
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)
    sync_name(path)


def sync(path: str, flags: int = os.O_NOFOLLOW) -> None:
    """Sync a file's content, or a folder's list of names, to disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_name(path: str) -> None:
    """Sync the folder of a new name: only then is the name on disk."""
    sync(os.path.dirname(path), os.O_DIRECTORY)


def locked(fd: int, kind: int) -> bool:
    """Whether the lock on an open file could be taken at once."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove(path: str, *suffixes: str) -> None:
    """Remove these files, in this order, as far as they exist: the path with each of the suffixes."""
    for suffix in suffixes:
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)


def size(path: str) -> int:
    """Bytes of a file; 0 if there is none, or it cannot be read."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
