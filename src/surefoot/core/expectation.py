"""What a run expects of the world: the last recorded value of each part, whoever recorded it.

What the run itself did is not drift: an effect that touches a part records how it left it. While an effect is in doubt,
the parts it touches are judged by nobody; once it is settled as happened they are taken as they are found, and as not
happened they must be as they were before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from surefoot.core.entry import ABSENT, Sight

START = "the start of the run"


class Expected(Struct, frozen=True):
    hash: str
    by: str
    """The call (or the person) that recorded it."""
    seq: int


class Unseen(Struct, frozen=True):
    """A witness that could not be observed: a stop, not a pass."""

    why: str


class Drift(Struct, frozen=True):
    """One part of the world that is not as the run left it."""

    witness: str
    part: str
    what: str
    """`added`, `removed`, `changed` or `not observable`."""
    expected: str
    actual: str
    by: str
    """Which call recorded what was expected."""

    def line(self) -> str:
        if self.what == "not observable":
            return f"{self.witness}: cannot be observed: {self.actual}"
        expected, actual = _short(self.expected), _short(self.actual)
        return f"{self.part}: {self.what} (expected {expected}, recorded by {self.by}; found {actual})"


def _short(value: str) -> str:
    """A hash is there to be told from another, not to be read."""
    head, _, rest = value.partition(" ")
    return f"{head[:12]}… {rest}".strip() if len(head) > 16 else value


class Expectation:
    """Folded from a run's entries."""

    def __init__(self) -> None:
        self.sights: dict[str, Sight] = {}
        """The newest sight of each witness, by its name."""
        self.parts: dict[str, Expected] = {}
        self.fresh: set[str] = set()
        """Parts that are to be taken as they are found next."""
        self._open: dict[str, frozenset[str]] = {}
        """In-doubt effect -> the parts it touches."""

    def see(self, sights: Iterable[Sight], by: str, seq: int) -> None:
        for sight in sights:
            before = self.sights.get(sight.witness)
            for part in before.parts if before is not None else ():
                if part not in sight.parts:
                    self.parts.pop(part, None)
            self.sights[sight.witness] = sight
            for part, value in sight.parts.items():
                self.parts[part] = Expected(value, by, seq)
                self.fresh.discard(part)

    def begin(self, address: str, sights: Iterable[Sight], seq: int) -> None:
        """An effect is about to touch these parts."""
        sights = tuple(sights)
        self.see(sights, f"{address}, before it ran", seq)
        self._open[address] = frozenset(part for sight in sights for part in sight.parts)

    def end(self, address: str, *, as_found: bool = False) -> None:
        """It is no longer in doubt. `as_found`: it happened, and how it left the world was not recorded."""
        touched = self._open.pop(address, frozenset())
        if as_found:
            self.fresh |= touched

    def forget_since(self, seq: int) -> None:
        """What was recorded from there on is set aside: take those parts as they are found."""
        for part, expected in list(self.parts.items()):
            if expected.seq >= seq:
                del self.parts[part]
                self.fresh.add(part)
        self._open.clear()

    @property
    def unsettled(self) -> frozenset[str]:
        """Parts that an effect in doubt touches."""
        return frozenset().union(*self._open.values())

    def drift(self, actual: Mapping[str, Mapping[str, str] | Unseen]) -> list[Drift]:
        """What is not as expected, part by part, each named once."""
        unjudged = self.fresh.union(*self._open.values())
        found: dict[str, Drift] = {}
        for witness, seen in actual.items():
            if isinstance(seen, Unseen):
                found[f"\0{witness}"] = Drift(witness, "", "not observable", "", seen.why, "")
                continue
            known = self.sights[witness].parts if witness in self.sights else {}
            for part in {**known, **seen}:
                if part not in unjudged and part not in found:
                    drift = self._judge(witness, part, seen.get(part, ABSENT))
                    if drift is not None:
                        found[part] = drift
        return list(found.values())

    def _judge(self, witness: str, part: str, actual: str) -> Drift | None:
        expected = self.parts.get(part, Expected(ABSENT, START, 0))
        if expected.hash == actual:
            return None
        what = "added" if expected.hash == ABSENT else "removed" if actual == ABSENT else "changed"
        return Drift(witness, part, what, expected.hash, actual, expected.by)
