"""Whether a call has changed the world: the compared parts are read before and after the call.

Others may change the world meanwhile. A file counts only if the call has opened it. A part that only a function of the
user can see, or that a program changes, counts only if no other call was in progress.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

SEEN_BY_USER: Final = ""
"""The name for the result of the user's own function about the world."""
World = Mapping[str, str]
"""The compared parts, by name: files, the ledger, the result of the user's function."""


@dataclass
class _Begun:
    before: World
    alone: bool
    reached: set[str] = field(default_factory=set)


class Eyes:
    """Watches the calls of one process; only one of them, if it is named."""

    def __init__(self, look: Callable[[], World], only: str | None = None) -> None:
        self._look = look
        self._only = only
        self._begun: dict[str, _Begun] = {}
        self._under_way: set[str] = set()
        self._lock = threading.Lock()

    def begins(self, call: str) -> None:
        with self._lock:
            for other in self._begun.values():
                other.alone = False
            alone = not self._under_way
            self._under_way.add(call)
        if self._only in (None, call):
            self._begun[call] = _Begun(self._look(), alone)

    def reaches(self, call: str, name: str) -> None:
        if (begun := self._begun.get(call)) is not None:
            begun.reached.add(name)

    def ends(self, call: str) -> bool | None:
        """Whether it has changed anything since it began. None: unknown, since it opens nothing that is compared."""
        with self._lock:
            self._under_way.discard(call)
            begun = self._begun.pop(call, None)
        if begun is None:
            return None
        after = self._look()
        changed = {name for name in begun.before.keys() | after.keys() if begun.before.get(name) != after.get(name)}
        if not changed and not begun.reached and SEEN_BY_USER not in after:
            return None
        return bool(changed if begun.alone else changed & begun.reached)
