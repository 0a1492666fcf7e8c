"""Recorded calls by all of their arguments, also those that are only noted; and which call was given one.

Where something lets a record stand for a call with other arguments (`on_change="keep"`, `noted=`, a person's word, a
rewind), the number decides which record that is. One call more in front would shift all that follow, and the last one
would be made again. So equal arguments come first, and a call that asks for what another one was given is a stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from surefoot.core import values
from surefoot.core.history import Past, PastCall

if TYPE_CHECKING:
    from surefoot.core.matching import Asked

Group = tuple[str, str, str]
"""Kind, scope and name."""
Renamed = Callable[[dict[str, Any], "Asked"], bool]


class Holdings:
    """For one replay: records by their arguments, and who holds them."""

    def __init__(self, recorded: Callable[[Past], dict[str, Any] | None], renamed: Renamed) -> None:
        self._recorded = recorded
        self._renamed = renamed
        self._indexes: dict[Group, dict[str, list[PastCall]]] = {}
        self._holders: dict[str, Asked] = {}
        """Record -> the call that it was given to, though its arguments are others."""

    def equal(self, asked: Asked, groups: Iterable[tuple[Group, Mapping[int, PastCall]]]) -> list[PastCall]:
        """The records that were made with these very arguments."""
        key = in_order(values.again(asked.args))
        found = [past for group, pasts in groups for past in self._index(group, pasts).get(key, ())]
        return [past for past in found if self.is_equal(past, asked)]

    def _index(self, group: Group, pasts: Mapping[int, PastCall]) -> dict[str, list[PastCall]]:
        index = self._indexes.get(group)
        if index is None:
            index = self._indexes[group] = {}
            for _, past in sorted(pasts.items()):
                if (recorded := self._recorded(past)) is not None:
                    index.setdefault(in_order(recorded), []).append(past)
        return index

    def is_equal(self, past: Past, asked: Asked) -> bool:
        recorded = self._recorded(past)
        if recorded is None:
            return False
        return values.digest(recorded) == values.digest(values.again(asked.args)) or self._renamed(recorded, asked)

    def is_loose(self, past: Past, asked: Asked) -> bool:
        """Whether it is known to have been made with other arguments."""
        return past.args is not None and not self.is_equal(past, asked)

    def give(self, past: Past, asked: Asked) -> None:
        """To be known later, if its arguments are others."""
        if self.is_loose(past, asked):
            self._holders[past.address] = asked

    def holder(self, past: Past) -> Asked | None:
        return self._holders.get(past.address)


def in_order(arguments: dict[str, Any]) -> str:
    """The values, whatever the parameters are called. Keywords may be passed in any order: they are sorted by name."""
    return " ".join(sorted(values.digest(value) for value in arguments.values()))
