"""Spans of frameworks: what a replay only repeats is not exported again.

On replay a framework's loop goes through every turn once more, and makes a span for each turn, model call and tool, although
the journal answers. So a span that is made in a run is held back until something in it is really executed; then it goes on,
with those around it. One that ends with nothing but recorded answers in it goes nowhere.

A span in which nothing was asked for at all (a handoff, arguments that the framework refuses) does what the one around it
does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from surefoot.engine.seams import Observer, hear, replays

_releasing = threading.RLock()
_hearing: set[Any] = set()


class Held:
    """One span of a framework. What it is made of knows how it is told to begin."""

    def __init__(self, around: Held | None) -> None:
        self._around = around
        self.is_rehearsed = replays()
        self.is_released = False
        self._is_answered = False

    def begin(self) -> None:
        """Tell of it now, if it has begun and has not ended."""
        raise NotImplementedError

    def release(self) -> None:
        """Something in it is executed."""
        with _releasing:  # Blocking calls side by side may be the first in a span, each in its thread.
            if self.is_released:
                return
            self.is_released = True
            if self._around is not None:
                self._around.release()
            self.begin()

    def answer(self) -> None:
        """Something in it came from the journal."""
        at: Held | None = self
        while at is not None:
            at._is_answered = True
            at = at._around

    def goes_on(self) -> bool:
        """Whether it is told of, now that it ends."""
        at: Held | None = self
        while at is not None:
            if at.is_released:
                return True
            if at._is_answered or at.is_rehearsed:
                return False
            at = at._around
        return True


class _Live(Observer):
    """The engine tells of calls that are really made, where they are made. Of a replay it tells nothing."""

    def __init__(self, here: Callable[[], Held | None]) -> None:
        self._here = here

    def call_began(self, call: Any) -> None:
        held = self._here()
        if held is not None:
            held.release()


def listen(here: Callable[[], Held | None]) -> None:
    """From here on the span that `here` finds is released when a call is really made."""
    if here not in _hearing:
        _hearing.add(here)
        hear(_Live(here))
