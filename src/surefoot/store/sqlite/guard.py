"""In a process that has a store open, other code should not open its database: this module warns if it does.

SQLite's locks are POSIX locks. They belong to the process, and closing *any* descriptor of a file drops all locks that the
process holds on it. A store is in the working folder. Code that reads every file there (a copy, an archive, an agent that
looks at its project) would let other processes write in the middle of a commit, and cut `-shm` short while they have it
mapped. That ends in a crash, or in damage that the seals and the anchor show; it is never silent. So such an `open`, or a
`sqlite3.connect`, is allowed, since a process that is alone on its store loses nothing by it, and agents read their folder.
But there is a warning, once for each store. Whether a process is alive does not depend on such a lock (`liveness.py`).

Python announces opened files through audit hooks. It does not announce files that are opened by libraries written in C,
by name relative to a directory's descriptor (`dir_fd`), or with `ATTACH`: those are not noticed. `apsw` is no danger:
SQLite knows its own descriptors. Other programs are no danger either. A hook stays for the life of the process, and in
forked children.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from surefoot.core.cure import Ask, command

_SHARED: Final = "-shm"


class Guarded(NamedTuple):
    """A database that a connection of this process has open."""

    path: str
    identity: tuple[int, int] | None


_guarded: Final[list[Guarded]] = []
"""One for each connection. Changed in single steps, without a lock: a forked child might find a lock held for ever."""
_told: Final[set[str]] = set()
_installed = False
_log = logging.getLogger("surefoot")


def guard(path: str) -> Guarded:
    """Warn if this database, or its `-shm`, is opened, until `release`. Call this before SQLite opens it."""
    global _installed  # noqa: PLW0603 - once per process: a hook cannot be taken back
    if not _installed:
        _installed = True
        sys.addaudithook(_look)
    file = Guarded(path, identity(path))
    _guarded.append(file)
    return file


def release(file: Guarded) -> None:
    _guarded.remove(file)


def _look(event: str, args: tuple[Any, ...]) -> None:
    # Called for everything that Python announces, so the first line decides the cost of the guard.
    if event != "open" and event != "sqlite3.connect":  # noqa: PLR1714 - a tuple would be slower
        return
    name = args[0]
    if not _guarded or isinstance(name, int):
        return
    try:
        name = name if isinstance(name, str) else os.fsdecode(name)
    except TypeError:
        return  # no name: `open` itself will refuse it
    if event == "sqlite3.connect":
        name = _path_of(name)
    found = identity(name)
    if found is not None:
        _tell_if_guarded(name, found)


def identity(path: str) -> tuple[int, int] | None:
    """Device and inode: locks belong to the file, under any name. None: there is no such file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _tell_if_guarded(name: str, found: tuple[int, int]) -> None:
    shared = name.endswith(_SHARED)
    for file in tuple(_guarded):
        # `-shm` may be made after the store is opened, so its identity is read now.
        if found == file.identity or (shared and found == identity(file.path + _SHARED)):
            if file.path not in _told:
                _told.add(file.path)  # First, since a handler may open a file itself.
                _tell(file, name)
            return


def _path_of(database: str) -> str:
    """The argument of `sqlite3.connect` may be a URI."""
    if not database.startswith("file:"):
        return database
    path = unquote(database.removeprefix("file:").partition("?")[0].partition("#")[0])
    return path.removeprefix("//localhost") if path.startswith("//localhost/") else path


def _tell(file: Guarded, name: str) -> None:
    _log.warning(
        "%s was opened by this program while it has the store %s open. Closing it again drops SQLite's locks: if other "
        "processes use the store, they may write at the same time and damage it. Leave its folder out of what you read; "
        "for a copy, run %s",
        name,
        file.path,
        command("backup", path=Ask("PATH")),
    )
