"""Loops of frameworks, and the tool calls that they run side by side.

A loop is one strand: its model calls are counted under the agent's name, in whichever task a turn is made. A tool call is
a strand of its own, under its id, which is part of the recorded answer. A stop in one of them is held back until the
siblings have come to their own ends or questions: the framework would cancel them, and the next question would be put only
after the first is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from surefoot.adapters.contexts import Shared
from surefoot.engine.seams import RunSignal, Strand, refused
from surefoot.errors import UsageError

T = TypeVar("T")
SIBLING_SECONDS = 1.0
"""So long a stop waits for calls of the same answer that have not begun."""

_loops: WeakKeyDictionary[Any, dict[str, list[Loop]]] = WeakKeyDictionary()
"""The loops of each drive, by the scope around them."""


class Loop:
    """One run of a framework's loop, from its first turn on."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._strand = Strand()
        self._tasks: WeakSet[Any] = WeakSet()
        self._is_over = False
        self.turn = Turn(())
        beside = _loops.setdefault(self._strand.driver, {}).setdefault(self._strand.path, [])
        for loop in beside:
            loop.leave_if_over()
        beside[:] = [loop for loop in beside if not loop._is_over]
        beside.append(self)

    def is_here(self) -> bool:
        """Whether the code at hand is at the place where this loop began."""
        return self._strand.is_here()

    def leave_if_over(self) -> None:
        """A framework does not say when its loop has ended. It has if the tasks that it was seen in have, but for the one of
        the code around: that is here now.
        """
        if all(task.done() or self._strand.is_owner(task) for task in self._tasks):
            self._is_over = True
            self._strand.join()

    def seen(self) -> None:
        """The task at hand makes a turn of it."""
        if self._is_over:
            raise refused(
                UsageError(
                    f"{self._what} goes on beside another one of the same name, so timing would decide whose calls are whose. "
                    'Use sf.gather(...) instead of asyncio.gather, or give each a scope: with sf.scope(f"ticket {n}"): ...'
                )
            )
        self._tasks.add(asyncio.current_task())

    @contextmanager
    def entered(self, label: str) -> Iterator[None]:
        """Calls in this block are the loop's own, under that label."""
        self.seen()
        with self._strand.entered(label, felt=True):
            yield

    def answered(self, calls: Iterable[str]) -> None:
        """A model has answered, and asks for tool calls with these ids."""
        self.turn = Turn(calls)


class Turn:
    """The tool calls of one answer."""

    def __init__(self, expected: Iterable[str]) -> None:
        self._to_come = set(expected)
        self._open: dict[str, int] = {}
        self._moved = asyncio.Event()
        self.shared = Shared()
        """The framework's context, which calls of this turn may change."""

    def expect(self, calls: Iterable[str]) -> None:
        """These calls are begun, too."""
        self._to_come.update(calls)

    async def call(self, call_id: str, body: Callable[[], Awaitable[T]]) -> T:
        """Run a tool call under its id. What stops it is passed on when its siblings have come to an end, too."""
        strand = Strand()
        self._to_come.discard(call_id)
        self._open[call_id] = self._open.get(call_id, 0) + 1
        self._moved.set()
        try:
            with strand.entered(call_id):
                value = await body()
            if isinstance(strand.stop, RunSignal):
                raise strand.stop  # Whatever the body made of it: a value that it returned anyway does not count.
        except RunSignal as signal:
            self._end(call_id)
            try:
                await self._siblings()
            finally:
                signal = strand.pass_on(signal)
            raise signal from None
        finally:
            self._end(call_id)
            strand.join()
        return value

    def _end(self, call_id: str) -> None:
        if call_id in self._open:
            self._open[call_id] -= 1
            if not self._open[call_id]:
                del self._open[call_id]
                self._moved.set()

    async def _siblings(self) -> None:
        """Wait until those that are open have ended, and a moment for those that have not begun."""
        loop = asyncio.get_running_loop()
        patience = loop.time() + SIBLING_SECONDS
        while self._open or (self._to_come and loop.time() < patience):
            self._moved.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(None if self._open else patience):
                    await self._moved.wait()
