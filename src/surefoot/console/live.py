"""That something has changed, as a stream of events: one poller a process, however many look on.

An event says which runs; whoever gets it fetches what it shows again. Changes that come close together are one event. The
poller only reads, and rests while nobody looks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Final

from msgspec import Struct

from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Damaged, SurefootError
from surefoot.store.contract import RESERVED

POLL_SECONDS: Final = 0.4
COMMENT_SECONDS: Final = 15.0
MOST_OF_ONE: Final = 32
MOST: Final = 256
_NAMED: Final = 50
_SCANNED: Final = 200
"""With more entries at once, all who look on look again: to read which runs they were of would cost more."""


class Change(Struct, frozen=True):
    position: int
    runs: frozenset[str] | None
    """None: more than are named."""

    def joined(self, other: Change) -> Change:
        runs = None if self.runs is None or other.runs is None else self.runs | other.runs
        return Change(other.position, None if runs is None or len(runs) > _NAMED else runs)


class _Listener:
    """One stream. What has not been sent yet is one change."""

    def __init__(self, run: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.run = run
        self.waiting: Change | None = None
        self.ready = asyncio.Event()

    def tell(self, change: Change) -> None:
        """Called by the poller's thread."""
        if self.run and change.runs is not None and self.run not in change.runs:
            return
        with contextlib.suppress(RuntimeError):  # Its loop has ended.
            self.loop.call_soon_threadsafe(self._take, change)

    def _take(self, change: Change) -> None:
        self.waiting = change if self.waiting is None else self.waiting.joined(change)
        self.ready.set()


class Full(Exception):
    """So many streams are open already."""


class Live:
    def __init__(self, runtime: Callable[[], Runtime], *, poll_seconds: float = POLL_SECONDS) -> None:
        self._runtime = runtime
        self._poll_seconds = poll_seconds
        self._lock = threading.Lock()
        self._listeners: dict[_Listener, str] = {}
        self._thread: threading.Thread | None = None
        self._pause = threading.Event()
        self._closed = False

    def open(self, who: str, run: str) -> _Listener:
        """A stream for somebody. `Full`, if there are too many."""
        listener = _Listener(run)
        with self._lock:
            if self._closed or len(self._listeners) >= MOST or Counter(self._listeners.values())[who] >= MOST_OF_ONE:
                raise Full
            self._listeners[listener] = who
            if self._thread is None:
                self._thread = threading.Thread(target=self._poll, name="surefoot-live", daemon=True)
                self._thread.start()
        return listener

    async def stream(self, listener: _Listener) -> AsyncIterator[str]:
        """The text of the events. It ends with its request."""
        try:
            yield "retry: 1000\n\n: open\n\n"
            while not self._closed:
                try:
                    async with asyncio.timeout(COMMENT_SECONDS):
                        await listener.ready.wait()
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                change, listener.waiting = listener.waiting, None
                listener.ready.clear()
                if change is not None:
                    yield event(change)
        finally:
            self.leave(listener)

    def leave(self, listener: _Listener) -> None:
        with self._lock:
            self._listeners.pop(listener, None)

    def close(self) -> None:
        with self._lock:
            self._closed, thread = True, self._thread
            listeners = list(self._listeners)
        self._pause.set()
        for one in listeners:
            one.tell(Change(0, None))
        if thread is not None:
            thread.join()

    # --- the poller's thread -------------------------------------------------------------------------

    def _poll(self) -> None:
        position, was_away = self._position(), False
        while not self._pause.wait(self._poll_seconds):
            with self._lock:
                if not self._listeners:
                    self._thread = None
                    return
            try:
                found = self._changed(position)
            except SurefootError:
                was_away = True  # Pages say so themselves; whoever looks again finds out.
                continue
            if was_away or found.position != position:
                self._tell(Change(found.position, None) if was_away else found)
            position, was_away = found.position, False

    def _position(self) -> int:
        try:
            return self._runtime().store.changes()
        except SurefootError:
            return -1

    def _changed(self, position: int) -> Change:
        store = self._runtime().store
        now = store.changes()
        if now == position:
            return Change(now, frozenset())
        if position < 0 or not 0 < now - position < _SCANNED:
            return Change(now, None)
        try:
            found = store.scan(position, _SCANNED)
        except Damaged:
            return Change(now, None)
        runs = frozenset(record.run for _, record in found if not record.run.startswith(RESERVED))
        last = found[-1][0] if found else now
        if len(found) == _SCANNED or len(runs) > _NAMED or not runs:
            return Change(max(now, last), None)
        return Change(max(now, last), runs)

    def _tell(self, change: Change) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for one in listeners:
            one.tell(change)


def event(change: Change) -> str:
    data = json.dumps({"runs": None if change.runs is None else sorted(change.runs)})
    return f"event: changed\nid: {change.position}\ndata: {data}\n\n"
