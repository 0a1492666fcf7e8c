"""Who is alive, certain and not guessed: every process holds a lock on a file of its own beside the store.

The operating system drops the lock when the process ends, however it ends, so a worker is dead if and only if
its lock can be had. Process ids are no evidence (containers, reuse), nor are times.

POSIX locks belong to the process, and closing *any* descriptor of a file drops all of the process's locks on
it. So a process never opens its own worker files a second time: `_OURS` says which those are.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from surefoot.errors import StoreUnavailable
from surefoot.store.contract import Store

_NAME: Final = re.compile(r"[0-9a-f]{16}\Z")
_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS: Final[dict[str, int]] = {}
"""The worker files this process holds locks on, and their descriptors."""
_NAMES: Final[set[str]] = set()
"""Every name this process ever had, in any store."""


_joining = threading.Lock()
"""One at a time in this process: a sweep must not open a file that another thread has just made."""


def _in_child() -> None:
    # Locks are not inherited. The descriptors stay open and unused: they are copies, closing gains nothing.
    global _joining  # noqa: PLW0603 - a thread that does not exist in the child may have held the old one
    _joining = threading.Lock()
    _OURS.clear()
    _NAMES.clear()


os.register_at_fork(after_in_child=_in_child)


def vouched(store: Store, worker: str) -> str:
    """Why a worker counts as alive, in words that go behind its name. A lease runs on for a while after a death."""
    until = None if is_ours(worker) else store.alive_until(worker)
    if until is None:
        return "which is alive"
    ends = datetime.fromtimestamp(until / 1e6, UTC).strftime("%H:%M:%S UTC")
    return f"whose lease runs until {ends} (if it is dead, ask again then)"


def is_ours(worker: str) -> bool:
    """Whether this process was, or is, known under that name."""
    return worker in _NAMES


def remember(worker: str) -> None:
    """This process is known under that name, in a store that has other signs of life."""
    _NAMES.add(worker)


class Liveness:
    """This process's sign of life in one store, and a look at the others'."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._name: str | None = None

    def join(self) -> str:
        """The identity under which others see that this process lives. The file is made at the first call."""
        if self._name is None:
            with _joining, _explained(self._folder):
                if self._name is None:
                    self._name = self._enter()
                    _NAMES.add(self._name)
        return self._name

    def alive(self, worker: str) -> bool:
        if not _NAME.match(worker):
            return False  # no worker of such a store was ever called that; and it must not become a path
        path = os.path.join(self._folder, worker)
        if path in _OURS:
            return True
        with _explained(self._folder):
            return not _dead(path)

    def leave(self) -> None:
        """Give the identity up: from here on others see this worker as dead."""
        with _joining:
            name, self._name = self._name, None
        if name is not None:
            path = os.path.join(self._folder, name)
            with contextlib.suppress(OSError):
                os.unlink(path)
            fd = _OURS.pop(path, -1)
            if fd >= 0:
                os.close(fd)

    def _enter(self) -> str:
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._folder, 0o700)
            os.chmod(self._folder, 0o700)
        self._sweep()
        while True:
            name = secrets.token_hex(8)
            path = os.path.join(self._folder, name)
            fd = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
            os.fchmod(fd, 0o600)
            fcntl.lockf(fd, fcntl.LOCK_EX)
            # Between making and locking, a sweeping process may have taken the file for a dead one's.
            if os.fstat(fd).st_nlink:
                _OURS[path] = fd
                return name
            os.close(fd)

    def _sweep(self) -> None:
        """Remove what dead workers left behind."""
        for name in os.listdir(self._folder):
            path = os.path.join(self._folder, name)
            if _NAME.match(name) and path not in _OURS:
                with contextlib.suppress(OSError):  # another user's file: not ours to tidy
                    _dead(path, remove=True)


def _dead(path: str, *, remove: bool = False) -> bool:
    """Whether the lock can be had. Shared, so that two who look at once do not take each other for the owner."""
    try:
        fd = os.open(path, _FLAGS)
    except FileNotFoundError:
        return True
    try:
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if remove:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
    except (BlockingIOError, PermissionError):  # POSIX allows either for "held by another process"
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
