"""This process's sign of life on a server: a lease that a thread of its own renews, by the server's clock.

A worker is alive as long as its lease runs. The thread has a connection of its own, and no code of the user's can block
it. Whether the lease still runs is computed here from the time when the last successful renewal was *sent*, by a clock
that also counts sleep. The server cannot have counted from an earlier moment. So if `holds` is true, every other
process counts this worker as alive.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from surefoot.errors import SurefootError
from surefoot.store.channel import C, Connected, Manners, explained
from surefoot.store.failure import Lost, Rejected
from surefoot.store.findings import CLOCK_SECONDS
from surefoot.store.host import HostLock
from surefoot.store.liveness import remember

_MARGIN: Final = 0.1
"""A part of the lease: we count it as over that much earlier than the server does."""
_PAUSE_SECONDS: Final = 0.2

log = logging.getLogger("surefoot")


def boot_seconds() -> float:
    """A clock that runs while the machine sleeps, and that cannot be set."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ServerClock:
    """The server's time, counted from its last answer. It is never ahead of the server, so no timer fires early."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._told = (0, 0.0)
        self._warned = False
        self.difference = 0.0
        """By how many seconds this machine's clock is ahead of the server's."""

    def note(self, micros: int) -> None:
        self._told = (micros, boot_seconds())
        self.difference = time.time() - micros / 1e6
        if abs(self.difference) > CLOCK_SECONDS and not self._warned:
            self._warned = True
            log.warning(
                "%s: this machine's clock is %.0f s %s the server's. Timers and leases go by the server's clock; times "
                "shown may be off.",
                self._where, abs(self.difference), "ahead of" if self.difference > 0 else "behind",
            )  # fmt: skip

    def now(self) -> int:
        micros, at = self._told
        return micros + int((boot_seconds() - at) * 1e6)


C_contra = TypeVar("C_contra", bound=Connected, contravariant=True)


class Signs(Protocol[C_contra]):
    """How the server learns that this process is alive. Used by one thread at a time."""

    def renew(self, connection: C_contra, name: str, about: str, silence: float, /) -> int:
        """Renew the lease, from the server's now. Returns that time, in microseconds since 1970."""

    def leave(self, connection: C_contra, name: str, silence: float, /) -> None:
        """Sign off: others count this worker as dead at once."""


class Lease(Generic[C]):
    def __init__(
        self, open_: Callable[[], C], signs: Signs[C], where: str, clock: ServerClock, seconds: float,
        lock: Callable[[], HostLock], manners: Manners,
    ) -> None:  # fmt: skip
        self._open = open_
        self._connection: C | None = None
        self._signs = signs
        self._where = where
        self._clock = clock
        self._seconds = seconds
        self._lock = lock
        self._manners = manners
        self._name = ""
        self._about = ""
        self._sent = 0.0
        self._joining = threading.Lock()
        self._over = threading.Event()
        self._hurry = threading.Event()
        """Renew now: there is new information about this worker, or it is over."""
        self._said = threading.Event()
        """The server has this worker's description of itself."""
        self._thread: threading.Thread | None = None
        self.renewals = 0
        self.losses = 0
        """How often the lease ran out before it was renewed."""

    def join(self) -> str:
        """The identity of this process. The first call gives the first sign of life and starts the thread."""
        if not self._name:
            with self._joining:
                if not self._name:
                    self._enter()
        return self._name

    def holds(self) -> bool:
        return boot_seconds() < self._sent + self._seconds * (1 - _MARGIN)

    def say(self, about: str) -> None:
        """Set what others read about this worker; if the server is away, this takes effect when it is back."""
        self._about = about
        self._said.clear()
        self.join()
        self._hurry.set()
        self._said.wait(self._silence)

    def leave(self) -> None:
        """Stop renewing, and sign off: others count this worker as dead at once."""
        self._over.set()
        self._hurry.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=self._seconds)
        if self._name:
            self._lock().leave()
        if self._connection is not None:
            try:
                if self._name:
                    self._signs.leave(self._connection, self._name, self._silence)
            except (Lost, Rejected):
                log.warning("%s: this worker could not sign off; its lease runs out by itself.", self._where)
            self._connection.close()

    @property
    def _silence(self) -> float:
        return max(self._seconds / 3, 0.5)

    def _enter(self) -> None:
        name = secrets.token_hex(16)
        self._lock().join(name)
        with explained(self._where, self._manners):
            self._renew(name)
        remember(name)
        self._name = name
        self._thread = threading.Thread(target=self._beat, name="surefoot-lease", daemon=True)
        self._thread.start()

    def _renew(self, name: str) -> None:
        if self._connection is None or self._connection.closed:
            self._connection = self._open()
        sent, about = boot_seconds(), self._about
        now = self._signs.renew(self._connection, name, about, self._silence)
        if self._name and sent > self._sent + self._seconds:
            self.losses += 1
        self._sent = sent
        self.renewals += 1
        self._clock.note(now)
        if about == self._about:
            self._said.set()

    def _beat(self) -> None:
        pause = self._seconds / 3
        while not self._over.is_set():
            if self._hurry.wait(pause):
                self._hurry.clear()
            if self._over.is_set():
                return
            try:
                self._renew(self._name)
                pause = self._seconds / 3
            except (Lost, Rejected, SurefootError, OSError):
                pause = _PAUSE_SECONDS  # `holds` becomes false by itself; we only try again
