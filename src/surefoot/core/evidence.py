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
    KINDS,
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
        self.lost = 0
        """How many entries earlier fallbacks had lost that are set aside themselves; -1: nobody can say."""

    @property
    def open(self) -> tuple[str, ...]:
        """Addresses of effects that were begun and whose outcome is not proven."""
        return tuple(address for key, address in self.begun.items() if key not in self.proven)


def weigh(sealer: Sealer, kept: Sequence[Record], aside: Sequence[Record]) -> Evidence:
    """Look at each record that was set aside by itself."""
    evidence = Evidence()
    intents: dict[str, EffectIntended | EffectSuspected] = {}
    fallbacks: list[int] = []
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
            case FellBack():
                fallbacks.append(entry.lost)
            case _:
                pass
    named = sum(record.kind == KIND_OF[FellBack] or record.kind not in KINDS for record in aside)
    evidence.lost = sum(fallbacks) if named == len(fallbacks) and min(fallbacks, default=0) >= 0 else -1
    return evidence


def _whole(sealer: Sealer, kept: Sequence[Record], aside: Sequence[Record]) -> Iterable[Entry | None]:
    """The entries of records that are whole by themselves; None where something is missing or damaged."""
    seals: dict[int, set[bytes]] = {0: {GENESIS}}
    for record in (*kept, *aside):
        seals.setdefault(record.seq, set()).add(record.seal)
    expected = 0
    for record in aside:
        if record.seq != expected:
            yield None
        expected = record.seq + 1
        whole = any(sealer.holds(record, previous) for previous in seals.get(record.seq - 1, ()))
        yield _entry(record) if whole else None


def _entry(record: Record) -> Entry | None:
    try:
        return from_record(record)
    except Stopped:
        return None  # written by a newer version: whole, but it says nothing to us
