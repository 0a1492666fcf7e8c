"""Who reached for what of the world, by the event log: a difference is blamed only on a call that it can come from.

Python tells which files a call opens for writing, renames or removes. What a program does that a call starts, it does not
tell: what nobody else is known to have reached for may be theirs. A thread of the user's own belongs to the calls that are
under way, else to the workflow's own lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from surefoot.testing import probe
from surefoot.testing.probe import ANYTHING, Call, LogLine

SOMEBODY: Final[Call] = ("", 0, "")
"""A thread that nobody has told what it works for."""


class Traces:
    """Of one process after the other. The workflow's own lines are a call without an address."""

    def __init__(self, *logs: Iterable[LogLine], workflow: str = "") -> None:
        self._of: dict[str, set[Call]] = {}
        self._workflows = {SOMEBODY: workflow}
        self.branches = False
        """Whether anything runs side by side."""
        for log in logs:
            self._follow(log)

    def _follow(self, log: Iterable[LogLine]) -> None:
        under_way: dict[Call, None] = {}
        for event in log:
            match event.what:
                case probe.BEGUN:
                    under_way[event.call] = None
                    self.branches = self.branches or "/" in event.address
                case probe.ENDED:
                    under_way.pop(event.call, None)
                case probe.TOUCHED:
                    self._note(event, under_way)
                case _:
                    pass

    def _note(self, event: LogLine, under_way: Iterable[Call]) -> None:
        if not event.address and event.run:
            self._workflows[event.call] = event.kind or self._workflows[SOMEBODY]
        whose = [event.call] if event.run else list(under_way) or [SOMEBODY]
        if event.value:
            self._of.setdefault(event.value, set()).update(whose)

    def can_come_from(self, call: Call, name: str) -> bool:
        """Without a name it is something that only a function of the user's can see."""
        known = self._known(name)
        programs = self._of.get(ANYTHING, set())
        return not name or call in known | programs or not known | programs

    def did(self, call: Call, name: str) -> bool:
        """Whether that call is known to reach for it."""
        return call in self._known(name)

    def is_known(self, name: str) -> bool:
        """Whether anybody is known to reach for it."""
        return bool(self._known(name))

    def reaches(self, call: Call) -> bool:
        """Whether that call is known to reach for anything that is compared."""
        return any(call in calls for calls in self._of.values())

    def own_lines(self, name: str) -> str:
        """The workflow whose own lines reach for that; empty if none's are known to."""
        calls = sorted(self._known(name) | self._of.get(ANYTHING, set()))
        return next((self._workflows[call] for call in calls if call in self._workflows), "")

    def is_shared(self, name: str) -> bool:
        """Whether branches that run side by side reach for it: in which order, only luck says."""
        known = self._known(name)
        lines = {(run, address.rpartition("/")[0]) for run, _, address in known}
        return self.branches and len(lines) != 1

    def _known(self, name: str) -> set[Call]:
        whole = [f"{name[:at]}/" for at, char in enumerate(name) if char == "/"]
        return set().union(*(self._of.get(one, set()) for one in (name, *whole)))
