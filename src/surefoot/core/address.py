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


Elsewhere = tuple[tuple[str, bool], ...]


class Scope:
    """Where addresses are counted. One node per label or branch; entering it again goes on counting."""

    __slots__ = ("_children", "_counts", "also", "owner", "path")

    def __init__(self, path: str = "", also: Elsewhere = ()) -> None:
        self.path = path
        self.owner: object = None
        """The line of control that counts here; two would number calls by luck, also one after the other."""
        self.also = also
        """Where its calls may be on record, too (`was=`): the path, and whether they are counted there as they are here."""
        self._counts: dict[str, int] = {}
        self._children: dict[str, Scope] = {}

    def take(self, name: str) -> str:
        """The address of the next call of that name."""
        number = self._counts.get(name, 0) + 1
        self._counts[name] = number
        return f"{self.path}{name}#{number}"

    def coming(self, name: str) -> str:
        """The address that the next call of that name will take."""
        return f"{self.path}{name}#{self._counts.get(name, 0) + 1}"

    def count(self, name: str) -> int:
        """How many calls of that name have taken an address here."""
        return self._counts.get(name, 0)

    def child(self, step: str) -> Scope | None:
        """What was opened below under that label (`[label]/`)."""
        return self._children.get(step)

    def labelled(self, label: str, was: str | None = None) -> Scope:
        """`was`: the label it had before; empty: its calls were made in the scope around it."""
        step = f"[{escape(label)}]/"
        child = self._children.get(step)
        if child is None:
            child = self._children[step] = Scope(self.path + step)
        child.also = self._elsewhere(step, was)
        return child

    def branch(self, verb: str, index: int, was: str | None = None) -> Scope:
        """The scope of one branch of the `gather` or `map` that has just taken its number."""
        step = f"{verb}#{self.count(verb)}.{index}/"
        return Scope(self.path + step, self._elsewhere(step, was))

    def _elsewhere(self, step: str, was: str | None) -> Elsewhere:
        inherited = tuple((path + step, counted) for path, counted in self.also)
        if was is None:
            return inherited
        old = f"[{escape(was)}]/" if was else ""
        here = ((self.path, True), *self.also)
        return (*inherited, *((path + old, counted and bool(was)) for path, counted in here))
