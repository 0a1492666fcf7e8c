"""Proof of death on one host: beside its lease, every process holds a lock on a file of its own on its machine.

An expired lease means that a process was silent, not that it is dead: it may be paused, or cut off from the
database, in the middle of an effect. On the same machine there is a proof. The operating system drops the lock when the
process ends, however it ends, and only then. So a worker is dead if its file exists, from this boot and this PID
namespace, and its lock can be taken. Its runs can be taken up at once, without waiting for its lease.

The files are in a folder of the user's that no other machine shares: `$XDG_RUNTIME_DIR`, else the folder for temporary
files. If no such folder is writable for this user alone, there is no proof, and leases decide as between hosts.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from typing import Final

from surefoot.errors import StoreUnavailable
from surefoot.store.liveness import Liveness

KEEP_SECONDS: Final = 86400.0
"""How long the file of a dead worker is kept, as proof that it is dead."""
log = logging.getLogger("surefoot")


class HostLock:
    """The lock of this process, and a check of the others' locks on this host."""

    def __init__(self, store: bytes) -> None:
        folder = _folder()
        self._liveness = None if folder is None else Liveness(f"{folder}/{store.hex()}", keep_seconds=KEEP_SECONDS)

    def join(self, worker: str) -> None:
        """Called before other processes know of this worker. Without a lock it can work, but its death cannot be proven."""
        if self._liveness is not None:
            try:
                self._liveness.join(worker)
            except StoreUnavailable as error:
                log.debug("no lock on this host: %s", error)
                self._liveness = None

    def is_gone(self, worker: str) -> bool:
        """Whether that worker is certainly dead."""
        return self._liveness is not None and self._liveness.is_gone(worker)

    def gone(self) -> list[str]:
        return [] if self._liveness is None else self._liveness.gone()

    def leave(self) -> None:
        if self._liveness is not None:
            self._liveness.leave()


def _folder() -> str | None:
    """The folder of this user alone, on this machine."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = (
        os.path.join(runtime, "surefoot")
        if os.path.isabs(runtime)
        else os.path.join(tempfile.gettempdir(), f"surefoot-{os.getuid()}")
    )
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return None
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder if is_ours else None
