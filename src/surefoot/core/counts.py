"""Verbs without arguments (`sf.now`, `sf.uuid4` …) are matched by number: are there as many of them as there were?

If a verb was inserted in front of others, each gets the value of the one before it. Nothing identifies them, so the
numbers are reported: how many were recorded in front of an effect, and how many the code asks for there now. A verb
with a name of its own (`sf.now(name="opened")`) is matched by its name, and not counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from surefoot.core.address import Scope
from surefoot.core.history import Past, PastTimer, PastValue

VERBS: Final = frozenset({"now", "random", "uuid4", "sleep"})


class Differing(Struct, frozen=True):
    """The number of calls of one verb in front of a recorded effect differs from the recorded number."""

    path: str
    verb: str
    effect: str
    recorded: int
    asked: int

    @property
    def address(self) -> str:
        """The address of the first of them stands for all."""
        return f"{self.path}{self.verb}#1"

    @property
    def digest(self) -> str:
        """Identifies the difference, so that it is noted once."""
        return f"{self.recorded} -> {self.asked}"

    @property
    def why(self) -> str:
        were, are = "was" if self.recorded == 1 else "were", "is" if self.asked == 1 else "are"
        return f"{self.recorded} {were} recorded in front of {self.effect}, and {self.asked} {are} asked for there now"

    def note(self, run: str) -> str:
        return (
            f"run {run}: sf.{self.verb}() in {self.path.rstrip('/') or 'the workflow'}: {self.why}. They are matched by "
            f'number, so some may have got another one\'s value. sf.{self.verb}(name="…") pins one.'
        )


class Counts:
    """The recorded verbs of one segment of a run: how many there were in front of each effect."""

    def __init__(self, calls: Iterable[Past]) -> None:
        self._seqs: dict[str, dict[str, list[int]]] = {}
        for past in calls:
            if isinstance(past, PastValue | PastTimer):
                path, _, last = past.address.rpartition("/")
                verb = last.partition("#")[0]
                if verb in VERBS:
                    self._seqs.setdefault(path and path + "/", {}).setdefault(verb, []).append(past.first)
        for verbs in self._seqs.values():
            for seqs in verbs.values():
                seqs.sort()

    def differing(self, scope: Scope, effect: Past) -> Iterable[Differing]:
        """Differences in front of a recorded effect that the code asks for now, in this scope or in one inside it."""
        recorded = self._seqs.get(scope.path, {})
        for verb in VERBS:
            were = bisect_left(recorded.get(verb, ()), effect.first)
            if were != (asked := scope.count(verb)):
                yield Differing(scope.path, verb, effect.address, were, asked)
