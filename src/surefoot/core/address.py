"""The name of a call inside a run: scope, name, occurrence. `propose#3`, `[src/a.py]/write#1`.

An address is taken when the call starts running, in the scope of its own branch, and never depends on
how branches are scheduled. The path of a module is never part of it, so code may move.
"""

from __future__ import annotations

import re
from typing import Final

_UNSAFE: Final = re.compile(r"[\[\]#%\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

_ADDRESS: Final = re.compile(r"\[[^\]]*\]/|[^#]+#\d+$|[^/#]+#\d+(\.\d+)?/")


def escape(label: str) -> str:
    """Percent-escape what has a meaning in addresses, and what does not belong in a name.

    A slash stays: between brackets it cannot be misread, and paths stay readable (`[src/a.py]/write#1`).
    """
    return _UNSAFE.sub(_escaped, label)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"%{code:02X}" if code < 0x100 else f"%u{code:04X}"


def as_recorded(address: str) -> str:
    """An address as people may write it: an escaped slash and a plain slash mean the same."""
    return address.replace("%2F", "/").replace("%2f", "/")


def is_address(text: str) -> bool:
    """Whether a text that should be a name is an address instead: `[eu]/send`, `send#1`."""
    return _ADDRESS.match(text) is not None


def approval_of(address: str) -> str:
    """The address of the question whether this effect may run."""
    return f"{address}.approval"


def split(address: str) -> tuple[str, str, int]:
    """Scope, name and number of an address; the number is 0 for what belongs to another call."""
    path, slash, last = address.rpartition("/")
    name, _, number = last.rpartition("#")
    return path + slash, name, int(number) if number.isdigit() else 0


def on_one_line(path: str, other: str) -> bool:
    """Whether two scopes are the same, or one is inside the other: then their calls run one after the other."""
    return path.startswith(other) or other.startswith(path)


Elsewhere = tuple[tuple[str, bool], ...]


class Scope:
    """Where addresses are counted. One node per label or branch; entering a node again continues its count."""

    __slots__ = ("_around", "_children", "_counts", "_old", "_step", "also", "owner", "path")

    def __init__(self, path: str = "", also: Elsewhere = (), around: Scope | None = None, step: str = "") -> None:
        self.path = path
        self._around = around
        self._step = step
        self._old = ""
        self.owner: object = None
        """The line of control that counts here; two lines would number calls by chance, even one after the other."""
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
        """The scope that was opened below, under that label (`[label]/`)."""
        return self._children.get(step)

    def labelled(self, label: str, was: str | None = None, *, shared: bool = False) -> Scope:
        """`was`: the label it had before; empty: its calls were made in the scope around it. `shared`: other scopes
        declare the same `was`, so their calls were counted together.
        """
        step = f"[{escape(label)}]/"
        child = self._children.get(step)
        if child is None:
            child = self._children[step] = Scope(self.path + step, around=self, step=step)
        child.also, child._old = self._elsewhere(step, was, shared=shared), "" if shared else _step(was)
        return child

    def branch(self, verb: str, index: int, was: str | None = None, *, shared: bool = False) -> Scope:
        """The scope of one branch of the `gather` or `map` that took its number last."""
        step = f"{verb}#{self.count(verb)}.{index}/"
        child = Scope(self.path + step, self._elsewhere(step, was, shared=shared), self, step)
        child._old = "" if shared else _step(was)
        return child

    def _elsewhere(self, step: str, was: str | None, *, shared: bool) -> Elsewhere:
        inherited = tuple((path + step, counted) for path, counted in self.also)
        if was is None:
            return inherited
        here = ((self.path, True), *self.also)
        return (*inherited, *((path + _step(was), counted and bool(was) and not shared) for path, counted in here))

    def before(self) -> list[Scope]:
        """The scopes it was before a renaming, as far as the code also opens them itself."""
        if self._around is None:
            return []
        olds = self._around.before()
        found = [old._children.get(self._step) for old in olds]
        if self._old:
            found += [old._children.get(self._old) for old in (self._around, *olds)]
        return [old for old in found if old is not None and old is not self]


def _step(label: str | None) -> str:
    return f"[{escape(label)}]/" if label else ""
