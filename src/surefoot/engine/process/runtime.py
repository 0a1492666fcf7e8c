"""What this process keeps for an open store: its committer, and the runs it drives there."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from surefoot.engine.process.clock import Clock, StoreClock, SystemClock
from surefoot.engine.process.commit import Committer
from surefoot.engine.process.meters import meters
from surefoot.engine.process.observer import observers
from surefoot.errors import SurefootError
from surefoot.store.contract import Store

if TYPE_CHECKING:
    from surefoot.engine.session.session import Session

VISIBLE_AFTER_MICROS = 1_000_000
"""The start of a step that runs longer than this is written."""
TICK_SECONDS = 0.5
MOST_REMEMBERED = 10_000
default_clock: Callable[[], Clock] = SystemClock
"""The clock of every runtime without one of its own (`clocked`)."""
observers.add(meters)


class Runtime:
    """One per open store and process."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self.store = store
        self.clock = clock or (default_clock() if store.now() is None else StoreClock(lambda: store.now() or 0))
        self.observer = observers
        self.committer = Committer(store, self.observer)
        self.turns: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        """For each event loop, the wait of its current turn (`acts_async.py`)."""
        self.doors: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        """For each event loop, the runs that wait to begin (`acts_async.py`)."""
        self._lock = threading.Lock()
        self._live: WeakSet[Session] = WeakSet()
        self._ticker: threading.Thread | None = None
        self._drove: dict[str, tuple[int, weakref.ref[Any]]] = {}

    def leave_running(self, key: str, is_alive: Callable[[], bool]) -> None:
        """The time of an effect is over, or its caller was interrupted. The effect could not be ended."""
        with _driving_lock:
            _left_running.append((self.store.id, key, is_alive))

    def still_running(self, key: str) -> bool:
        """Whether an earlier, abandoned attempt under this key still runs in this process."""
        with _driving_lock:
            _left_running[:] = [left for left in _left_running if left[2]()]
            return any(left[:2] == (self.store.id, key) for left in _left_running)

    def enlist(self, session: Session) -> bool:
        """Add the session. False if this process already drives the run."""
        with _driving_lock:
            return _driving.setdefault((self.store.id, session.run), session) is session

    def discharge(self, session: Session) -> None:
        session.journal.close()
        session.flight.ended = True
        with _driving_lock:
            if _driving.get((self.store.id, session.run)) is session:
                del _driving[self.store.id, session.run]
        with self._lock:
            self._live.discard(session)
        if session.claim.live:
            self.observer.run_ended(session.run, session.state.status)

    def has_driven(self, run: str, epoch: int, fn: object) -> None:
        """A worker releases a run that it has driven up to its head, with this code."""
        with self._lock:
            self._drove[run] = epoch, weakref.ref(fn)
            while len(self._drove) > MOST_REMEMBERED:
                self._drove.pop(next(iter(self._drove)))

    def drove(self, run: str, epoch: int, fn: object) -> bool:
        """Whether this very process was the last to claim the run, with the same code: nothing can have changed."""
        with self._lock:
            known = self._drove.get(run)
        return known is not None and known[0] == epoch and known[1]() is fn

    def driven(self) -> list[Session]:
        """The sessions that have claimed their runs."""
        with self._lock:
            return list(self._live)

    def watch(self, session: Session) -> None:
        """Make its long steps visible while they run."""
        with self._lock:
            self._live.add(session)
            if self._ticker is None:
                self._ticker = threading.Thread(target=self._tick, name="surefoot-ticker", daemon=True)
                self._ticker.start()

    def _tick(self) -> None:
        # Ticks even when nothing runs: two wake-ups a second cost less than an Event that Ctrl-C can break in set().
        pause = threading.Event()
        while not pause.wait(TICK_SECONDS) and self.store.usable:
            for session in self.driven():
                # Visibility only: the run finds any failure of the store at its next append.
                with suppress(SurefootError):
                    session.journal.flush(self.clock.now() - VISIBLE_AFTER_MICROS)


# Of the whole process, not of one handle: a handle that was given up may still have calls in flight.
# Weak: a session that was cut off during its release (Ctrl-C, twice) must not block its run for ever.
_driving: WeakValueDictionary[tuple[bytes, str], Session] = WeakValueDictionary()
_left_running: list[tuple[bytes, str, Callable[[], bool]]] = []
"""(store, key, is it alive?) of effects that run on although no code waits for them."""
_driving_lock = threading.Lock()


def driven_here(store: Store, run: str) -> bool:
    """Whether a thread or task of this process drives the run."""
    with _driving_lock:
        return (store.id, run) in _driving


_runtimes: dict[int, Runtime] = {}
_runtimes_lock = threading.Lock()


def _in_child() -> None:
    # The parent still drives its runs. None of its threads is here, so a lock held by one of them stays locked.
    global _driving_lock, _runtimes_lock
    _driving_lock, _runtimes_lock = threading.Lock(), threading.Lock()
    _driving.clear()
    _left_running.clear()
    _runtimes.clear()


os.register_at_fork(after_in_child=_in_child)


def runtime_of(store: Store) -> Runtime:
    with _runtimes_lock:
        found = _runtimes.get(id(store))
        if found is None or found.store is not store:
            for key in [key for key, known in _runtimes.items() if not known.store.usable]:
                _runtimes.pop(key).committer.close()
            found = _runtimes[id(store)] = Runtime(store)
        return found


def known() -> list[Runtime]:
    """The runtimes of the open stores."""
    with _runtimes_lock:
        return list(_runtimes.values())


@contextmanager
def clocked(clock: Clock) -> Iterator[None]:
    """Inside this block, the runs of this process use that clock: for tests."""
    global default_clock  # noqa: PLW0603 - a fact about this process
    before, kept = default_clock, [(runtime, runtime.clock) for runtime in known()]
    default_clock = lambda: clock  # noqa: E731 - it has no name of its own
    for runtime, _ in kept:
        runtime.clock = clock
    try:
        yield
    finally:
        default_clock = before
        for runtime, own in kept:
            runtime.clock = own
