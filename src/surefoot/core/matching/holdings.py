"""Recorded calls by all of their arguments, including those that are only noted; and the calls that they were given to.

Where a record may stand for a call with other arguments (`on_change="keep"`, `noted=`, a person's declaration, a
rewind), the number decides which record that is. One more call in front would shift all that follow, and the last one
would be made again. So equal arguments come first, and asking for a record that another call was given is a stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from surefoot.core import values
from surefoot.core.history import Past, PastCall
from surefoot.core.matching.answers import Asked
from surefoot.core.matching.records import Group, Records


class Holdings:
    """For one replay: records by their arguments, and the calls that hold them."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._arguments = records.arguments
        self._indexes: dict[Group, dict[str, list[PastCall]]] = {}
        self._holders: dict[str, Asked] = {}
        """Record -> the call that it was given to, though its arguments are others."""

    def equal(self, asked: Asked) -> list[PastCall]:
        """The candidates for its own record that were made with these very arguments."""
        return self._equal(asked, self._records.groups_of(asked))

    def beside(self, asked: Asked) -> list[PastCall]:
        """Records of that name in other scopes with all of these arguments."""
        groups = self._records.groups().items()
        of_that_name = ((key, group) for key, group in groups if (key[0], key[2]) == (asked.kind, asked.name))
        return self._equal(asked, ((key, group) for key, group in of_that_name if key[1] != asked.path))

    def _equal(self, asked: Asked, groups: Iterable[tuple[Group, Mapping[int, PastCall]]]) -> list[PastCall]:
        key = _in_order(values.again(asked.args))
        found = [past for group, pasts in groups for past in self._index(group, pasts).get(key, ())]
        return [past for past in found if self._arguments.is_equal(past, asked)]

    def _index(self, group: Group, pasts: Mapping[int, PastCall]) -> dict[str, list[PastCall]]:
        index = self._indexes.get(group)
        if index is None:
            index = self._indexes[group] = {}
            for _, past in sorted(pasts.items()):
                if (recorded := self._arguments.recorded(past)) is not None:
                    index.setdefault(_in_order(recorded), []).append(past)
        return index

    def give(self, past: Past, asked: Asked) -> None:
        """Remembers the call, if its arguments are others."""
        if self._arguments.is_loose(past, asked):
            self._holders[past.address] = asked

    def holder(self, past: Past) -> Asked | None:
        return self._holders.get(past.address)


def _in_order(arguments: dict[str, Any]) -> str:
    """The values: parameters may have other names by now, and keywords may be passed in any order."""
    return " ".join(sorted(values.digest(value) for value in arguments.values()))
