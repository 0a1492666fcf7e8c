"""The name of a call inside a run: scope, name, occurrence. `propose#3`, `[src/a.py]/write#1`.

An address is taken when the call starts running, in the scope of its own branch, and never depends on
how branches are scheduled. The path of a module is never part of it, so code may move.
"""

from __future__ import annotations

import re
from typing import Final

_UNSAFE: Final = re.compile(r"[\[\]#%\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def escape(label: str) -> str:
    """Percent-escape what has a meaning in addresses, and what has no business in a name.

    A slash stays: between brackets it cannot be mistaken, and paths stay readable (`[src/a.py]/write#1`).
    """
    return _UNSAFE.sub(_escaped, label)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"%{code:02X}" if code < 0x100 else f"%u{code:04X}"


def as_recorded(address: str) -> str:
    """An address as people may write it: an escaped slash means the same."""
    return address.replace("%2F", "/").replace("%2f", "/")


class Scope:
    """Where addresses are counted. One node per label or branch; entering it again goes on counting."""

    __slots__ = ("_children", "_counts", "path", "user")

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.user: object = None
        """Who counts here now (a thread or a task); two at once would number calls by luck."""
        self._counts: dict[str, int] = {}
        self._children: dict[str, Scope] = {}

    def take(self, name: str) -> str:
        """The address of the next call of that name."""
        number = self._counts.get(name, 0) + 1
        self._counts[name] = number
        return f"{self.path}{name}#{number}"

    def count(self, name: str) -> int:
        """How many calls of that name have taken an address here."""
        return self._counts.get(name, 0)

    def labelled(self, label: str) -> Scope:
        return self._child(f"[{escape(label)}]/")

    def branch(self, address: str, index: int) -> Scope:
        """The scope of one branch of a `gather` or `map` that has its own address."""
        return Scope(f"{address}.{index}/")

    def _child(self, step: str) -> Scope:
        child = self._children.get(step)
        if child is None:
            child = self._children[step] = Scope(self.path + step)
        return child
