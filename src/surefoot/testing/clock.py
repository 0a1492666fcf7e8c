"""A clock that stands still until a caller waits: hours of sleeping take no time, and every run gets the same times.

Recorded luck (`sf.random`, `sf.uuid4`) follows from the place in the run that asks for it, so that a run which was
killed and resumed gets the same values as an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from surefoot.core.timer import MICROS, Duration, Moment, seconds
from surefoot.engine.declare import current
from surefoot.engine.process.runtime import clocked


class FastClock:
    """Begins at `start` (microseconds since 1970; default: now) and is moved by waiting and by `forward`."""

    def __init__(self, start: int | None = None, on_wait: Callable[[str, int], object] | None = None) -> None:
        self._now = time.time_ns() // 1000 if start is None else start
        self._on_wait = on_wait or (lambda _side, _now: None)
        self._lock = threading.Lock()
        self._drawn: set[tuple[str, int]] = set()

    def read(self) -> Moment:
        return Moment(self._now, "fast-forward", self._now)

    def now(self) -> int:
        return self._now

    def forward(self, duration: Duration) -> None:
        """Let that much time pass at once."""
        with self._lock:
            self._now += round(seconds(duration) * MICROS)

    def nap(self, left: float) -> float:
        self._on_wait("before", self._now)
        self.forward(left)
        self._on_wait("after", self._now)
        return 0.0

    def random(self) -> float:
        return int.from_bytes(_hashed(_here("random"))[:6], "big") / (1 << 48)

    def uuid4(self) -> uuid.UUID:
        """The UUID for this place in the run. Other callers (a claim) get a fresh one each time."""
        here = _here("uuid4")
        with self._lock:
            if not here[1] or here in self._drawn:
                return uuid.uuid4()
            if not current.get().session.dry:  # A rehearsal asks first, and the drive gets the same.
                self._drawn.add(here)
        return uuid.UUID(bytes=_hashed(here)[:16], version=4)


def _here(verb: str) -> tuple[str, int]:
    """The current scope, and how often this verb was used in it."""
    place = current.get()
    if place is None or place is current.OUTSIDE:
        return "", 0
    return f"{place.session.run} {place.segment} {place.scope.path}{verb}", place.scope.count(verb)


def _hashed(here: tuple[str, int]) -> bytes:
    return hashlib.sha256(f"{here[0]}#{here[1]}".encode()).digest()


@contextmanager
def installed(clock: FastClock) -> Iterator[FastClock]:
    """Inside this block, every run of this process uses that clock."""
    with clocked(clock):
        yield clock
