"""The calls that were on record when a replay began: by name and number, by the effects after them, asked for or not.

Calls recorded meanwhile are not past for the replay: a new call has a number that a later call may ask for by
itself. The state of a recorded call may still change meanwhile: `today`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from surefoot.core.address import on_one_line, split
from surefoot.core.history import Past, PastCall, PastStep, may_have_happened
from surefoot.core.matching.answers import Asked
from surefoot.core.matching.arguments import Arguments
from surefoot.core.matching.learned import Learned

_BELONGS: Final = re.compile(r"\.undo$|#\d+\.repair\d+$")
"""Undos and repairs belong to their effect: no other call is matched with one."""
_P = TypeVar("_P", bound=Past)

Group = tuple[str, str, str]
"""Kind, scope and name."""


class Records:
    """For one replay of one segment of a run."""

    def __init__(self, calls: Mapping[str, Past], arguments: Arguments, learned: Learned) -> None:
        self.calls = dict(calls)
        self._live = calls
        self.arguments = arguments
        self._heard = learned.asked
        self.asked: set[str] = set(learned.outdone)
        """Recorded calls that the code has asked for."""
        self.put_in: set[str] = set()
        """Effects that were declared new: they may have been executed late, in front of older ones."""
        self._groups: dict[Group, dict[int, PastCall]] | None = None
        self._places: dict[tuple[str, str], dict[int, PastCall]] = {}
        self._given: dict[tuple[str, str], int] = {}
        """The highest number given to a new call."""
        self._executed: list[PastCall] | None = None
        self._all_asked = False
        self._unasked = iter(self.calls)
        self._next_unasked = next(self._unasked, None)

    def past(self, address: str) -> Past | None:
        """What was on record there when the replay began, as it stands now."""
        return self._live.get(address) if address in self.calls else None

    def today(self, past: _P) -> _P:
        """The record as it is now: a person may have settled it since the replay began."""
        live = self._live.get(past.address)
        return live if isinstance(live, type(past)) else past

    def is_used_up(self) -> bool:
        """Whether the code has asked for every record: then there is nothing to search, and each further call is new."""
        while self._next_unasked in self.asked:  # A record that was asked for stays asked for.
            self._next_unasked = next(self._unasked, None)
        return self._next_unasked is None

    # -- by name and number -------------------------------------------------------------------------

    def groups(self) -> Mapping[Group, Mapping[int, PastCall]]:
        if self._groups is None:
            self._groups = {}
            for past in self.calls.values():
                if isinstance(past, PastCall):
                    where, called, number = split(past.address)
                    self._groups.setdefault((past.kind, where, called), {})[number] = past
        return self._groups

    def group(self, kind: str, path: str, name: str) -> Mapping[int, PastCall]:
        return self.groups().get((kind, path, name), {})

    def groups_of(self, asked: Asked) -> Iterable[tuple[Group, Mapping[int, PastCall]]]:
        """The candidates for its own record."""
        places = ((asked.path, asked.name), *((path, name) for path, name, _ in elsewhere(asked)))
        for path, name in dict.fromkeys(places):
            yield (asked.kind, path, name), self.group(asked.kind, path, name)

    def left(self, kind: str, path: str, name: str, behind: int = 0) -> list[PastCall]:
        """Records that the code has not asked for, in the order of their numbers."""
        group = sorted(self.group(kind, path, name).items())
        return [past for number, past in group if number > behind and past.address not in self.asked]

    def at(self, asked: Asked, *, exact: bool = False) -> Past | None:
        """The record that its number leads to: in the scope under its former name, here, or under an old name of the
        call. Records that were counted together with others come last. `exact`: includes a record that was asked for.
        """
        around: list[PastCall] = []
        numbered: list[Past] = []
        for path, name, counted in elsewhere(asked):
            if not counted:
                around += self.group(asked.kind, path, name).values()
                continue
            past = self._numbered(path, name, asked)
            if past is not None and past.address not in self.asked:
                numbered.append(past)
        if numbered and (moved := [past for past in numbered if split(past.address)[0] != asked.path]):
            return moved[0]
        direct = self._numbered(asked.path, asked.name, asked)
        if direct is not None and (direct.address not in self.asked or exact):
            return direct
        return numbered[0] if numbered else self._first_of(around, asked)

    def _numbered(self, path: str, name: str, asked: Asked) -> Past | None:
        """The record of that number. A step that was asked for anew has another number in its address. The newest
        record that the code asked for by this number counts: the earlier answers were not acted on.
        """
        past = self.calls.get(f"{path}{name}#{asked.number}")
        if asked.fenced or (past is not None and past.kind != asked.kind):
            return past
        places = self._places.get((path, name))
        if places is None:
            group = sorted(self.group("step", path, name).items(), key=lambda one: one[1].first)
            places = self._places[path, name] = {
                past.asked_as or number: past for number, past in group if isinstance(past, PastStep)
            }
        return places.get(asked.number)

    def _first_of(self, around: list[PastCall], asked: Asked) -> PastCall | None:
        """Calls that were counted together with others: the first with these arguments, else the first."""
        left = sorted((past for past in around if past.address not in self.asked), key=lambda past: past.first)
        return self.arguments.likest(left, asked) or (left[0] if left else None)

    def free(self, asked: Asked) -> str:
        """The next number that no record and no new call has."""
        key = (asked.path, asked.name)
        number, given = asked.number, self._given.get(key, 0)
        if asked.address in self.calls or number <= given:
            number = max([*self.group(asked.kind, *key), given]) + 1
        self._given[key] = max(number, given)
        return f"{asked.path}{asked.name}#{number}"

    # -- what was done --------------------------------------------------------------------------------

    def executed(self) -> list[PastCall]:
        """Effects and child runs that may have happened. Not undos and repairs."""
        if self._executed is None:
            calls = (past for past in self.calls.values() if isinstance(past, PastCall))
            self._executed = [past for past in calls if may_have_happened(past) and not _belongs(past)]
        return self._executed

    def unasked(self) -> list[PastCall]:
        """Those that the code has not asked for, also in no rehearsal."""
        if self._all_asked:
            return []
        known = self.asked | self._heard
        left = [past for past in self.executed() if past.address not in known]
        self._all_asked = not left  # A record that was asked for stays asked for.
        return [past for past in map(self.today, left) if may_have_happened(past)]

    def acting(self, past: Past) -> Iterable[PastCall]:
        """Effects on its line of control after it, and so perhaps because of it."""
        path = split(past.address)[0]
        return (
            other for other in self.executed() if other.first > past.seq and on_one_line(path, split(other.address)[0])
        )

    def is_acted_on(self, past: Past) -> bool:
        return any(True for _ in self.acting(past))

    def is_passed(self, past: Past) -> bool:
        """Whether the code has already asked for the effects after it: its next calls come after those."""
        return any(other.address in self.asked and other.address not in self.put_in for other in self.acting(past))


def elsewhere(asked: Asked) -> Iterable[tuple[str, str, bool]]:
    """Other scopes and names under which it may be on record; whether calls are counted there as they are here."""
    for name in asked.names:
        yield asked.path, name, True
    for path, counted in asked.also:
        for name in (asked.name, *asked.names):
            yield path, name, counted


def _belongs(past: Past) -> bool:
    return _BELONGS.search(split(past.address)[1]) is not None or _BELONGS.search(past.address) is not None
