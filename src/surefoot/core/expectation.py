"""What a run expects of the world: the last recorded value of each part, no matter who recorded it.

What the run itself did is not drift: an effect that touches a part records how it left it. While an effect is in doubt,
the parts that it touches are not judged. After "happened" they are taken as found, after "not happened" they must be as
they were before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy

from msgspec import Struct

from surefoot.core.entry import ABSENT, Drift, EffectSettled, Sight, WorldSeen

START = "the start of the run"
ACCEPTED = "accepted by "


class Expected(Struct, frozen=True):
    hash: str
    by: str
    """The call (or the person) that recorded it."""
    seq: int


class Unseen(Struct, frozen=True):
    """A witness that could not be observed: a stop, not a pass."""

    why: str


UNSEEN = "not observable"


def _parts_of(witnesses: set[str], actual: Mapping[str, Mapping[str, str] | Unseen]) -> set[str]:
    seen = (actual.get(witness, {}) for witness in witnesses)
    return {part for parts in seen if not isinstance(parts, Unseen) for part in parts}


class Expectation:
    """Folded from a run's entries."""

    def __init__(self) -> None:
        self.sights: dict[str, Sight] = {}
        """The newest sight of each witness, by its name."""
        self.unwatched: set[str] = set()
        """Witnesses that a person has removed from this run: the run observes them no more."""
        self.parts: dict[str, Expected] = {}
        self.fresh: set[str] = set()
        """Parts whose next observation is accepted as found."""
        self.fresh_witnesses: set[str] = set()
        """Witnesses whose parts are all accepted as found next: an effect may have made new parts."""
        self._seen_by: dict[str, str] = {}
        """Witness -> who recorded its newest sight, and so that no other part was there."""
        self.folder = ""
        """The working folder of the process that observed last: relative paths mean nothing without it."""
        self.host = ""
        """The host of that process."""
        self.version = 0
        """Counts changes of what is expected, so that an older observation can be recognised."""
        self._begun: dict[str, int] = {}
        """Witness -> the entry in which `sf.watch` saw it first, if nothing else has observed it."""
        self._open: dict[str, tuple[Sight, ...]] = {}
        """Effect in flight or in doubt -> what it touches, as it was before."""
        self._begun_at: dict[str, int] = {}
        """Effect in flight or in doubt -> the version when it began."""
        self._learned: dict[str, int] = {}
        """Part -> the version in which the part last changed."""

    def copy(self) -> Expectation:
        """A copy as of now: later changes do not affect it."""
        twin = Expectation()
        twin.__dict__.update({name: copy(value) for name, value in vars(self).items()})
        return twin

    def left(self, address: str, after: Iterable[Sight], seq: int) -> None:
        """An effect left the world like this. A part that the effect did not change, and others of the run changed
        since, keeps the value that they left.
        """
        since, touched = self._begun_at.get(address, self.version), self._open.get(address, ())
        before = {part: value for sight in touched for part, value in sight.parts.items()}
        self.end(address, as_found=True)
        self.see([self._without_others(sight, before, since) for sight in after], address, seq)

    def settled(self, entry: EffectSettled, seq: int) -> None:
        """Settled by its check, which knows how the effect left the world; or by a person: then that is unknown."""
        if entry.after:
            self.left(entry.address, entry.after, seq)
        else:
            self.end(entry.address, as_found=entry.happened)

    def _without_others(self, sight: Sight, before: Mapping[str, str], since: int) -> Sight:
        """The observation may be older than what another branch has recorded meanwhile. It says nothing new about parts
        that were the same before and after this effect.
        """
        parts = dict(sight.parts)
        known = self.sights[sight.witness].parts if sight.witness in self.sights else {}
        for part in {**known, **parts}:
            unchanged = sight.parts.get(part, ABSENT) == before.get(part, ABSENT)
            if unchanged and self._learned.get(part, 0) > since:
                expected = self.parts.get(part)
                parts.pop(part, None)
                if expected is not None:
                    parts[part] = expected.hash
        return sight if parts == sight.parts else Sight(sight.witness, parts, sight.spec)

    def see(self, sights: Iterable[Sight], by: str, seq: int) -> None:
        self.version += 1
        for sight in sights:
            self.fresh_witnesses.discard(sight.witness)
            self.unwatched.discard(sight.witness)
            before = self.sights.get(sight.witness)
            for part in before.parts if before is not None else ():
                if part not in sight.parts:
                    self.parts.pop(part, None)
                    self._learned[part] = self.version
            self.sights[sight.witness] = sight
            self._seen_by[sight.witness] = by
            for part, value in sight.parts.items():
                known = self.parts.get(part)
                if known is None or known.hash != value:
                    self._learned[part] = self.version
                self.parts[part] = Expected(value, by, seq)
                self.fresh.discard(part)

    def found(self, entry: WorldSeen, seq: int) -> None:
        if entry.address:
            self._begun.update({sight.witness: seq for sight in entry.sights if sight.witness not in self.sights})
        self.see(entry.sights, entry.address or entry.why or START, seq)

    def begin(self, address: str, sights: Iterable[Sight], seq: int) -> None:
        """An effect is about to touch these parts."""
        sights = tuple(sights)
        self.see(sights, f"{address}, before it ran", seq)
        for sight in sights:
            self._begun.pop(sight.witness, None)  # An effect touched it: the run relies on it from now on.
        self._open[address] = sights
        self._begun_at[address] = self.version

    def end(self, address: str, *, as_found: bool = False) -> None:
        """The effect is no longer in doubt. `as_found`: it happened, and how it left the world was not recorded."""
        self.version += 1
        touched = self._open.pop(address, ())
        self._begun_at.pop(address, None)
        if as_found:
            self.fresh.update(part for sight in touched for part in sight.parts)
            self.fresh_witnesses.update(sight.witness for sight in touched)

    def forget_since(self, seq: int, calls: Iterable[str]) -> None:
        """The records of these calls, from that entry on, are set aside: accept their parts as found next.

        What is watched only since that entry is no longer watched, until the code asks for it again.
        """
        for part, expected in list(self.parts.items()):
            if expected.seq >= seq:
                del self.parts[part]
                self.fresh.add(part)
        for address in calls:
            self.end(address, as_found=True)
        for witness in [witness for witness, begun in self._begun.items() if begun >= seq]:
            self._drop(witness)

    def unwatch(self, witnesses: Iterable[str]) -> None:
        """A person declares that the run does not rely on these any more."""
        for witness in witnesses:
            self.version += 1
            self.unwatched.add(witness)
            self._drop(witness)

    def _drop(self, witness: str) -> None:
        """Nothing is expected of what only this witness sees."""
        self.fresh_witnesses.discard(witness)
        self._begun.pop(witness, None)
        self._seen_by.pop(witness, None)
        seen = self.sights.pop(witness, None)
        others = {part for sight in self.sights.values() for part in sight.parts}
        for part in seen.parts.keys() - others if seen is not None else ():
            self.parts.pop(part, None)
            self.fresh.discard(part)

    def unsettled(self, actual: Mapping[str, Mapping[str, str] | Unseen]) -> set[str]:
        """Parts that an effect in doubt touches: those observed before it, and those it may have made."""
        touched = [sight for sights in self._open.values() for sight in sights]
        known = {part for sight in touched for part in sight.parts}
        return known | _parts_of({sight.witness for sight in touched}, actual)

    def drift(self, actual: Mapping[str, Mapping[str, str] | Unseen]) -> list[Drift]:
        """The parts that are not as expected, each named once."""
        unjudged = self.fresh | _parts_of(self.fresh_witnesses, actual) | self.unsettled(actual)
        found: dict[str, Drift] = {}
        for witness, seen in actual.items():
            if isinstance(seen, Unseen):
                found[f"\0{witness}"] = Drift(witness, "", UNSEEN, "", seen.why, "")
                continue
            known = self.sights[witness].parts if witness in self.sights else {}
            for part in {**known, **seen}:
                if part not in unjudged and part not in found:
                    drift = self._judge(witness, part, seen.get(part, ABSENT))
                    if drift is not None:
                        found[part] = drift
        return list(found.values())

    def unlike(self, sights: Iterable[Sight]) -> list[Drift]:
        """The parts of these that are not as expected. A part that this run has never seen is no drift, and neither is
        one that an effect in flight or in doubt touches: that part is judged once the effect has ended.
        """
        found = self.drift({sight.witness: sight.parts for sight in sights})
        return [drift for drift in found if drift.witness in self.sights or drift.part in self.parts]

    def touched(self, address: str) -> tuple[Sight, ...]:
        """What an effect in flight or in doubt touches, as observed before the effect."""
        return self._open.get(address, ())

    def _judge(self, witness: str, part: str, actual: str) -> Drift | None:
        expected = self.parts.get(part, Expected(ABSENT, self._seen_by.get(witness, START), 0))
        if expected.hash == actual:
            return None
        what = "added" if expected.hash == ABSENT else "removed" if actual == ABSENT else "changed"
        return Drift(witness, part, what, expected.hash, actual, expected.by)
