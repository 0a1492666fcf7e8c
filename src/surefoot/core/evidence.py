"""What records that were set aside still prove about effects. It settles doubts; it never becomes part of a run.

After a fallback the run is what its valid prefix says. Beyond the gap there may be records that are whole by
themselves: their seal holds, given the seal of the record before them. Of those, an outcome counts if the intent is
whole too, and everything between the two, and names the very same call: same key (so same run, segment and address)
and same arguments. Steps are never taken over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from surefoot.core.entry import (
    KIND_OF,
    EffectDone,
    EffectIntended,
    EffectRaised,
    EffectRecovered,
    EffectSettled,
    EffectSuspected,
    Entry,
    FellBack,
    RunAdopted,
    RunContinued,
    Value,
)
from surefoot.core.seal import GENESIS, Record, Sealer, from_record
from surefoot.errors import Stopped


class Proof(Struct, frozen=True):
    """That a call with these arguments was executed, and what it gave."""

    digest: str
    value: Value


class Evidence:
    """What is known of the effects beyond a gap, by their keys."""

    def __init__(self) -> None:
        self.proven: dict[str, Proof] = {}
        self.begun: dict[str, str] = {}
        """Key -> address of effects that were begun, whether or not an outcome is proven."""
        self.claimants: list[RunAdopted] = []

    @property
    def open(self) -> tuple[str, ...]:
        """Addresses of effects that were begun and whose outcome is not proven."""
        return tuple(address for key, address in self.begun.items() if key not in self.proven)


def weigh(sealer: Sealer, kept: Sequence[Record], aside: Sequence[Record]) -> Evidence:
    """Look at each record that was set aside by itself."""
    evidence = Evidence()
    intents: dict[str, EffectIntended | EffectSuspected] = {}
    for entry in _whole(sealer, kept, aside):
        match entry:
            case None | RunContinued():
                intents.clear()  # what follows may belong to another segment, where the same address is another call
            case EffectIntended() | EffectSuspected():
                intents[entry.address] = entry
                evidence.begun[entry.key] = entry.address
            case EffectRecovered():
                evidence.begun[entry.key] = entry.address
                evidence.proven[entry.key] = Proof(entry.digest, entry.value)
            case EffectDone() | EffectSettled(happened=True):
                intent = intents.get(entry.address)
                if intent is not None and entry.attempt == getattr(intent, "attempt", 1):
                    evidence.proven[intent.key] = Proof(intent.digest, entry.value)
            case EffectRaised():
                intents.pop(entry.address, None)  # a later outcome would need an intent of its own
            case RunAdopted():
                evidence.claimants.append(entry)
            case _:
                pass
    return evidence


def lost_before(sealer: Sealer, kept: Sequence[Record], aside: Sequence[Record]) -> int:
    """How many entries were lost by earlier fallbacks that are set aside themselves; -1: nobody can say.

    Whatever sets records aside leaves a copy of its own record there, so that losing the one leaves the other.
    """
    fallbacks = [record for record in aside if record.kind == KIND_OF[FellBack]]
    standing = {record.seal for record in kept}
    found: dict[bytes, int] = {}
    told: set[int] = set()
    for record, entry in _looked_at(sealer, kept, aside):
        if isinstance(entry, FellBack):
            told.add(record.seq)
            if record.seal not in standing:
                found[record.seal] = entry.lost
    if any(record.seq not in told for record in fallbacks) or min(found.values(), default=0) < 0:
        return -1
    return sum(found.values())


def _whole(sealer: Sealer, kept: Sequence[Record], aside: Sequence[Record]) -> Iterable[Entry | None]:
    """The entries of records that are whole by themselves; None where something is missing or damaged."""
    expected = 0
    for record, entry in _looked_at(sealer, kept, aside):
        if record.seq != expected:
            yield None
        expected = record.seq + 1
        yield entry


def _looked_at(
    sealer: Sealer, kept: Sequence[Record], aside: Sequence[Record]
) -> Iterable[tuple[Record, Entry | None]]:
    """Each record that was set aside, with its entry if it is whole by itself."""
    seals: dict[int, set[bytes]] = {0: {GENESIS}}
    for record in (*kept, *aside):
        seals.setdefault(record.seq, set()).add(record.seal)
    for record in aside:
        whole = any(sealer.holds(record, previous) for previous in seals.get(record.seq - 1, ()))
        yield record, _entry(record) if whole else None


def _entry(record: Record) -> Entry | None:
    try:
        return from_record(record)
    except Stopped:
        return None  # written by a newer version: whole, but it says nothing to us
