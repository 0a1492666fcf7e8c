"""Whether a call has changed the world: what is compared is looked at before it and after it.

Others may change the world meanwhile. A file counts only if the call has reached for it; what only a function of the
user's can see, or a program does, counts only if no other call was under way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

SEEN_BY_USER: Final = ""
"""What a function of the user's sees of the world goes by this name."""
World = Mapping[str, str]
"""What is compared, by name: files, the ledger, what a function of the user's sees."""


@dataclass
class _Begun:
    before: World
    alone: bool
    reached: set[str] = field(default_factory=set)


class Eyes:
    """On the calls of one process; on one of them only, if it is named."""

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
        """Whether it has changed anything since it began. None: nobody can see, it reaches for nothing that is compared."""
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
