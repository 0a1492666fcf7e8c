"""What this process keeps for an open store: its committer, and the runs it drives there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from surefoot.engine.clock import Clock, SystemClock
from surefoot.engine.commit import Committer
from surefoot.engine.journal import Journal
from surefoot.errors import SurefootError
from surefoot.store.contract import Store

VISIBLE_AFTER_MICROS = 1_000_000
"""A step that runs longer than this has its start written down by itself."""
TICK_SECONDS = 0.5


class Driving(Protocol):
    """A process driving a run."""

    run: str
    journal: Journal
    ended: bool


class Runtime:
    """One per open store and process."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self.store = store
        self.clock = clock or SystemClock()
        self.committer = Committer(store)
        self.identity: str | None = None
        """The worker under which this process has claimed runs, once it has."""
        self.turns: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        """For each event loop, what its current turn waits for (`drive_async`)."""
        self.left_running: list[tuple[str, Callable[[], bool]]] = []
        """(key, is it alive?) of effects that used up their time and could not be ended."""
        self._lock = threading.Lock()
        # Weak: a session that was cut off even while it let go (Ctrl-C, twice) must not bar its run for ever.
        self._sessions: WeakValueDictionary[str, Driving] = WeakValueDictionary()
        self._live: WeakSet[Driving] = WeakSet()
        self._ticker: threading.Thread | None = None

    def still_running(self, key: str) -> bool:
        """Whether an earlier attempt under this key is under way in this process, after it was given up."""
        self.left_running = [(each, is_alive) for each, is_alive in self.left_running if is_alive()]
        return any(each == key for each, _ in self.left_running)

    def enlist(self, session: Driving) -> bool:
        """Whether this process was not driving the run already."""
        with self._lock:
            return self._sessions.setdefault(session.run, session) is session

    def discharge(self, session: Driving) -> None:
        session.journal.close()
        session.ended = True
        with self._lock:
            if self._sessions.get(session.run) is session:
                del self._sessions[session.run]
            self._live.discard(session)

    def drives(self, run: str) -> bool:
        with self._lock:
            return run in self._sessions

    def driven(self) -> list[Driving]:
        """The sessions that have claimed their runs."""
        with self._lock:
            return list(self._live)

    def watch(self, session: Driving) -> None:
        """Make its long steps visible while they run."""
        with self._lock:
            self._live.add(session)
            if self._ticker is None:
                self._ticker = threading.Thread(target=self._tick, name="surefoot-ticker", daemon=True)
                self._ticker.start()

    def _tick(self) -> None:
        # Ticks on when nothing runs: two wake-ups a second cost less than an Event that Ctrl-C can break in set().
        pause = threading.Event()
        while not pause.wait(TICK_SECONDS):
            for session in self.driven():
                # Visibility only: whatever is wrong with the store meets the run at its next append.
                with suppress(SurefootError):
                    session.journal.flush(self.clock.now() - VISIBLE_AFTER_MICROS)


_runtimes: dict[int, Runtime] = {}
_runtimes_lock = threading.Lock()


def runtime_of(store: Store) -> Runtime:
    with _runtimes_lock:
        found = _runtimes.get(id(store))
        if found is None or found.store is not store:
            found = _runtimes[id(store)] = Runtime(store)
        return found
