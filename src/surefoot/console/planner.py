"""Who asks the code: a child process that imports it, for ten seconds a question, two at a time.

The console itself imports no code of the user. A child that takes longer is ended with all that it has started, and another
one begins. It is replaced when its code changes on disk. Plans are kept for a moment, for the state they were made for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty
from typing import Any, Final
from weakref import WeakSet

import msgspec

from surefoot.console.child import Child
from surefoot.console.options import Options
from surefoot.console.plans import PLAN, Planned, Wanted, answered
from surefoot.engine.process.runtime import Runtime
from surefoot.store.open import shown

PLAN_SECONDS: Final = 10.0
IMPORT_SECONDS: Final = 30.0
"""For importing the code, once for a child."""
AT_ONCE: Final = 2
KEPT_SECONDS: Final = 5.0
"""The world and the clock move too, not only the run."""
_MOST_KEPT: Final = 200
CHILD: Final = "surefoot.cli.planning"


class _Busy(Exception):
    """All children are at work."""


class Planner:
    def __init__(self, options: Options, url: str, *, seconds: float = PLAN_SECONDS) -> None:
        self._options = options
        self._url = url
        self._seconds = seconds
        self._free = threading.BoundedSemaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._alive: set[Child] = set()
        self._ready: WeakSet[Child] = WeakSet()
        """Those that have imported the code."""
        self._kept: dict[tuple[Any, ...], tuple[float, Planned]] = {}
        self._closed = False

    def ask(self, runtime: Runtime, wanted: Wanted) -> Planned:
        """Blocking."""
        if wanted.want != PLAN:
            return self._asked(runtime, wanted)  # The world moves without an entry: a look at it is never kept.
        head = runtime.store.read(wanted.run, limit=1).head
        key = (*wanted.key, None if head is None else head.seal)
        with self._lock:
            at, known = self._kept.get(key, (0.0, None))
        if known is not None and time.monotonic() - at < KEPT_SECONDS:
            return known
        found = self._asked(runtime, wanted)
        with self._lock:
            while len(self._kept) >= _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = time.monotonic(), found
        return found

    def _asked(self, runtime: Runtime, wanted: Wanted) -> Planned:
        if not self._options.apps:
            return answered(runtime, wanted, shown(self._url))
        try:
            for _ in range(AT_ONCE):
                found = self._with_child(lambda child: self._answer(child, wanted))
                if not found.is_stale:
                    return found
            return self._with_child(lambda child: self._answer(child, wanted), anew=True)
        except _Busy:
            return Planned(unknown="Other plans are being made. Look again in a moment.")

    def _answer(self, child: Child, wanted: Wanted) -> tuple[Planned, bool]:
        """The answer, and whether the child can go on."""
        child.say(msgspec.to_builtins(wanted))
        try:
            said: dict[str, Any] | None = {}
            if child not in self._ready:
                said = child.next(IMPORT_SECONDS)  # That the code was imported; or that it has ended.
                self._ready.add(child)
            said = said if said is None else child.next(self._seconds)
        except Empty:
            why = (
                f"The code did not answer in time ({self._seconds:g} s), and was ended. What would follow is not known."
            )
            return Planned(unknown=why), False
        if said is None:
            why = f"The process with the code has ended by itself (exit code {child.exit_code()})."
            return Planned(unknown=f"{why} What would follow is not known."), False
        found = msgspec.convert(said, Planned)
        return found, not found.is_stale

    def warm(self) -> None:
        """Begin a child now: importing the code may take longer than anybody waits for a first page."""
        if not self._options.apps:
            return
        child = self._begun()
        self._give_back(child, sound=True)

    def _with_child(self, ask: Callable[[Child], tuple[Planned, bool]], *, anew: bool = False) -> Planned:
        if not self._free.acquire(timeout=self._seconds):
            raise _Busy
        try:
            child, sound = self._taken(anew=anew), False
            try:
                found, sound = ask(child)
            finally:
                self._give_back(child, sound=sound)
        finally:
            self._free.release()
        return found

    def _taken(self, *, anew: bool) -> Child:
        with self._lock:
            if not anew and self._idle:
                return self._idle.pop()
        return self._begun()

    def _begun(self) -> Child:
        with self._lock:
            if self._closed:
                raise _Busy
            child = Child(CHILD)
            self._alive.add(child)
        child.say({"apps": self._options.apps, "store": self._url})
        return child

    def _give_back(self, child: Child, *, sound: bool) -> None:
        with self._lock:
            if sound and not self._closed:
                self._idle.append(child)
                return
            self._alive.discard(child)
        child.end()

    def close(self) -> None:
        """End all children."""
        with self._lock:
            self._closed = True
            children, self._alive, self._idle = list(self._alive), set(), []
        for child in children:
            child.end()
