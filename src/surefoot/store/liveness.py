"""Which workers are certainly alive: every process holds a lock on a file of its own beside the store.

The operating system drops the lock when the process ends, however it ends, so a worker is dead if and only if
its lock can be taken. Process ids are no evidence (containers, reuse), nor are times.

The lock is `flock`, which belongs to the opened file, and not a POSIX lock, which belongs to the process: closing
*any* descriptor of a file drops all POSIX locks the process has on it, and code that reads every file of the working
folder, which is where the store is, would make a living process look dead. (On NFS, Linux makes `flock` a lock on the
server, which belongs to the opened file as well. macOS has `flock`, too.) Three things follow:

- A forked child has a copy of the opened file, which would keep the lock after its parent is dead. The child closes it at
  once, and no fork happens between opening a file and noting it. A program that is started (exec) does not inherit it.
- The file's content names the process and what it serves: for people, and for workers that search for others. The
  content proves nothing; the lock does.
- The two kinds of locks do not see each other on a local disk. A process of surefoot from before 0.1.0, which took a POSIX
  lock, counts as dead here: end those first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surefoot.errors import StoreUnavailable
from surefoot.store.contract import Life, Serving

_NAME: Final = re.compile(r"(?:[0-9a-f]{16}){1,2}\Z")
_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS: Final[dict[str, int]] = {}
"""The worker files this process holds locks on, and their descriptors."""
_NAMES: Final[set[str]] = set()
"""Every name that this process ever had, in any store."""


_joining = threading.RLock()
"""Held while a worker file is opened and noted, and while the process is forked: a child inherits only noted files."""


def _in_child() -> None:
    global _joining  # noqa: PLW0603 - threads that do not exist in the child may wait for the old one
    _joining = threading.RLock()
    for fd in _OURS.values():
        # Only closed, never unlocked: that would also unlock the parent's file.
        with contextlib.suppress(OSError):
            os.close(fd)
    _OURS.clear()
    _NAMES.clear()


os.register_at_fork(
    before=lambda: _joining.acquire(),  # noqa: PLW0108 - a child of a child has another lock
    after_in_parent=lambda: _joining.release(),  # noqa: PLW0108
    after_in_child=_in_child,
)


def vouched(store: Life, worker: str) -> str:
    """Why a worker counts as alive, in words that follow its name. A lease still runs for a while after a death."""
    until = None if is_ours(worker) else store.alive_until(worker)
    if until is None:
        return "which is alive"
    ends = datetime.fromtimestamp(until / 1e6, UTC).strftime("%H:%M:%S UTC")
    return f"whose lease runs until {ends} (if it is dead, ask again then)"


def is_ours(worker: str) -> bool:
    """Whether this process was, or is, known under that name."""
    return worker in _NAMES


def remember(worker: str) -> None:
    """Note a name of this process in a store where leases are its sign of life."""
    _NAMES.add(worker)


class Card(Struct, frozen=True):
    """The content of a worker's file."""

    host: str
    pid: int
    since: int
    boot: str = ""
    """Its boot of the machine, and its PID namespace."""
    serving: Serving | None = None


class Liveness:
    """This process's sign of life in one store, and those of others."""

    def __init__(self, folder: str, *, keep_seconds: float = 0.0) -> None:
        """`keep_seconds`: how long the file of a dead worker is kept, as proof that it is dead."""
        self._folder = folder
        self._name: str | None = None
        self._keep_seconds = keep_seconds
        self._card = Card("", 0, 0)

    def join(self, name: str = "") -> str:
        """The identity by which others know that this process is alive. The file is made at the first call."""
        if self._name is None:
            with _joining, _explained(self._folder):
                if self._name is None:
                    self._name = self._enter(name)
                    _NAMES.add(self._name)
        return self._name

    def serve(self, serving: Serving | None) -> None:
        with _explained(self._folder):
            path = os.path.join(self._folder, self.join())
            self._card = replace(self._card, serving=serving)
            self._write(_OURS[path])

    def living(self) -> list[tuple[str, Card]]:
        """The living workers, the longest known first, with their descriptions of themselves."""
        with _explained(self._folder):
            names = [name for name in listed(self._folder) if self.alive(name)]
            found = [(name, card) for name in names if (card := self.card(name)) is not None]
        return sorted(found, key=lambda one: (one[1].since, one[0]))

    def gone(self) -> list[str]:
        """Workers of this boot whose lock can be taken: they are certainly dead."""
        return [name for name in listed(self._folder) if self.is_gone(name)]

    def is_gone(self, worker: str) -> bool:
        """Whether the process that had this name here, on this machine, in this boot, has ended."""
        if not _NAME.match(worker) or is_ours(worker):
            return False
        path = os.path.join(self._folder, worker)
        try:
            card = self.card(worker)
            is_dead = card is not None and bool(card.boot) and card.boot == boot() and _dead(path)
            # A process that gives up its name removes its file first: then the lock can be taken, though the process is
            # alive.
            return is_dead and os.path.exists(path)
        except OSError:
            return False

    def card(self, worker: str) -> Card | None:
        try:
            with open(os.path.join(self._folder, worker), "rb") as file:
                return msgspec.json.decode(file.read(), type=Card)
        except (OSError, msgspec.DecodeError):
            return None  # gone meanwhile, being written, or from a version that wrote none

    def _write(self, fd: int) -> None:
        os.ftruncate(fd, 0)
        os.pwrite(fd, msgspec.json.encode(self._card), 0)

    def alive(self, worker: str) -> bool:
        if not _NAME.match(worker):
            return False  # no worker of such a store ever had that name, and it must not become a path
        path = os.path.join(self._folder, worker)
        if path in _OURS:
            return True
        with _explained(self._folder):
            return not _dead(path)

    def leave(self) -> None:
        """Give up the identity: from now on others count this worker as dead."""
        with _joining:
            name, self._name = self._name, None
        if name is not None:
            _give_back(os.path.join(self._folder, name))

    def _enter(self, wanted: str) -> str:
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._folder, 0o700)
            os.chmod(self._folder, 0o700)
        self._sweep()
        while True:
            name = wanted or secrets.token_hex(8)
            path = os.path.join(self._folder, name)
            fd = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
            _OURS[path] = fd
            try:
                os.fchmod(fd, 0o600)
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Between making and locking, another process may have removed the file as a dead worker's.
                if os.fstat(fd).st_nlink:
                    self._card = Card(os.uname().nodename, os.getpid(), time.time_ns() // 1000, boot())
                    self._write(fd)
                    return name
            except BlockingIOError:
                pass  # another process is checking it: a new name is faster than waiting
            except BaseException:
                _give_back(path)
                raise
            _give_back(path)

    def _sweep(self) -> None:
        """Remove the files of dead workers."""
        for name in os.listdir(self._folder):
            path = os.path.join(self._folder, name)
            if _NAME.match(name):
                with contextlib.suppress(OSError):  # another user's file: not ours to remove
                    if time.time() - os.stat(path).st_mtime >= self._keep_seconds:
                        _dead(path, remove=True)


def boot() -> str:
    """This boot of this machine, and the PID namespace. Empty: unknown on this system."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def listed(folder: str) -> list[str]:
    """The files of workers in this folder, living and dead."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _give_back(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
    fd = _OURS.pop(path, -1)
    if fd >= 0:
        os.close(fd)


def _dead(path: str, *, remove: bool = False) -> bool:
    """Whether the lock can be taken. Shared: two processes that check at once do not block each other."""
    try:
        fd = os.open(path, _FLAGS)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if remove:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        fcntl.flock(fd, fcntl.LOCK_UN)  # a child forked right now has a copy, and would keep the lock
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


@contextlib.contextmanager
def _explained(folder: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"{folder}: cannot tell which workers are alive: {error.strerror}. "
            "This user must be able to write there, on a file system with working locks."
        ) from error
