"""What a report tells beside its verdict: what was really executed where the kit does not look, and what never answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from surefoot.core.visible import shorten
from surefoot.testing import probe
from surefoot.testing.probe import LogLine
from surefoot.testing.scenarios import Task

WIDTH: Final = 160


class Noted:
    """Collects over all scenarios; a function is noted once, whatever its addresses."""

    def __init__(self) -> None:
        self._executed: Counter[str] = Counter()
        self._abroad: dict[str, str] = {}
        self._unsure: dict[str, str] = {}
        self._answered: set[str] = set()
        self._said: dict[str, str] = {}

    def add(self, about: str, said: str) -> None:
        """Once for each thing that it is about."""
        if said:
            self._said.setdefault(about, said)

    def look(self, events: Iterable[LogLine]) -> None:
        for event in events:
            function = function_of(event.address)
            match event.what:
                case probe.BEGUN:
                    self._executed[function] += 1
                case probe.ABROAD:
                    self._abroad.setdefault(function, event.text)
                case probe.LOOKED if event.text in probe.ANSWERS:
                    self._answered.add(function)
                case probe.LOOKED:
                    self._unsure.setdefault(function, event.value)
                case _:
                    pass

    def told(self, task: Task) -> list[str]:
        abroad = [] if task.world.look is not None else [self._went(name, what) for name, what in self._abroad.items()]
        unsure = [
            f"{name}: its check never gave an answer ({shorten(why, WIDTH) or 'unknown'}), so a person is asked each time."
            for name, why in self._unsure.items()
            if name not in self._answered
        ]
        return [*abroad, *unsure, *self._said.values()]

    def _went(self, name: str, what: str) -> str:
        return (
            f"{name} was really executed {self._executed[name]} times, and reaches out of the folder that is compared "
            f"({shorten(what, WIDTH)}). What it did there nobody has looked at: give the test a fake, or say with world= "
            "how to look at it."
        )


def function_of(call: str) -> str:
    """The function behind an address: without its scope and occurrence."""
    return call.rpartition("#")[0].rpartition("/")[2] or call
