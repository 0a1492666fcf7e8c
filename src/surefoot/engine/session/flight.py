"""The calls that are being made, and when: from the moment the function is called to the moment it has ended."""

from __future__ import annotations

import threading
from collections.abc import Collection
from math import inf
from typing import Any

from surefoot.engine.declare.signals import HaltSignal
from surefoot.errors import UsageError


class Flight:
    """The calls in flight of one drive. Once the function has ended, none begins."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._lock = threading.Lock()
        self.calls: dict[str, str] = {}
        """Address -> kind of the calls that are being made."""
        self.loose: tuple[str, ...] = ()
        """Calls that were under way when the function ended: nobody waits for them."""
        self.ended = False
        self.entered = 0
        """How many verbs the code has come to."""
        self.invoked = 0.0
        """In tasks: when the code was called, by the clock of their loop."""
        self.made_at = -inf
        """The same: when the last call was made to its end."""
        self.tasks_before: Collection[Any] = ()
        """Tasks that were there before the function was invoked: none of them is the workflow's own."""

    def call_begins(self, address: str, kind: str) -> None:
        with self._lock:
            if self.ended:
                raise HaltSignal(UsageError(f"run {self._run}: {address} was called after the workflow had ended"))
            self.calls[address] = kind

    def call_ended(self, address: str) -> None:
        self.calls.pop(address, None)

    def function_ended(self) -> None:
        """From here on no call begins; those that have begun are known."""
        with self._lock:
            self.ended = True
            self.loose = tuple(sorted(self.calls))

    @property
    def has_effects(self) -> bool:
        return "effect" in self.calls.values()
