"""What records that were set aside still prove about effects. Evidence settles doubts; it never becomes part of a run.

After a fallback the run is its valid prefix. Beyond the gap there may be records that are whole by
themselves: their seal holds, given the seal of the record before them. Of those, an outcome counts if the intent is
whole too, and everything between the two, and names the very same call: same key (so same run, segment and address)
and same arguments. Steps are never taken over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from msgspec import Struct

from surefoot.core.audit import set_aside
from surefoot.core.entry import (
    KIND_OF,
    CallsReopened,
    CancelRequested,
    EffectDone,
    EffectDoubted,
    EffectIntended,
    EffectRaised,
    EffectRecovered,
    EffectSettled,
    EffectSuspected,
    EffectUnstorable,
    Entry,
    EventSent,
    FellBack,
    RunAdopted,
    RunContinued,
    RunRewound,
    Value,
)
from surefoot.core.seal import Record, Sealer, from_record
from surefoot.errors import Stopped


class Proof(Struct, frozen=True):
    """A call with these arguments was executed, and this is its result."""

    digest: str
    value: Value
    defaults: Value


class Evidence:
    """What is known of the effects beyond a gap, by their keys."""

    def __init__(self) -> None:
        self.proven: dict[str, Proof] = {}
        self.begun: dict[str, str] = {}
        """Key -> address of effects that were begun, whether or not an outcome is proven."""
        self.named: set[str] = set()
        """Addresses with any whole entry, even an outcome without its intent."""
        self.claimants: list[RunAdopted] = []
        self.messages: list[Record] = []
        """Messages of others to the run: events, a request to cancel. Each was sent once, and acknowledged."""
        self.whole = 0
        """How many entries are whole."""

    @property
    def open(self) -> tuple[str, ...]:
        """Addresses of effects that were begun and whose outcome is not proven."""
        return tuple(address for key, address in self.begun.items() if key not in self.proven)


def weigh(sealer: Sealer, kept: Sequence[Record], aside: Sequence[Record]) -> Evidence:
    """Look at each record that was set aside by itself."""
    evidence = Evidence()
    intents: dict[str, EffectIntended | EffectSuspected] = {}
    for record, entry in _whole(sealer, kept, aside):
        evidence.whole += entry is not None and not isinstance(entry, FellBack)
        if isinstance(entry, EFFECT_ENTRIES):
            evidence.named.add(entry.address)
        match entry:
            case None | RunContinued():
                intents.clear()  # what follows may belong to another segment, where the same address is another call
            case RunRewound() | CallsReopened():
                # The run is no longer cancelled after either of them.
                evidence.messages = [sent for sent in evidence.messages if sent.kind != KIND_OF[CancelRequested]]
                if isinstance(entry, RunRewound):
                    # A person has rewound the run: what was done is known, its worth is not. In a run that was
                    # reopened, what succeeded still stands; what failed has no outcome here to prove anything.
                    intents.clear()
                    evidence.proven.clear()
            case EffectIntended() | EffectSuspected():
                intents[entry.address] = entry
                evidence.begun[entry.key] = entry.address
            case EffectRecovered():
                evidence.begun[entry.key] = entry.address
                evidence.proven[entry.key] = Proof(entry.digest, entry.value, entry.defaults)
            case EffectDone() | EffectSettled(happened=True):
                intent = intents.get(entry.address)
                if intent is not None and entry.attempt == intent.attempt:
                    evidence.proven[intent.key] = Proof(intent.digest, entry.value, intent.defaults)
            case EffectRaised():
                intents.pop(entry.address, None)  # a later outcome would need an intent of its own
            case RunAdopted():
                evidence.claimants.append(entry)
            case CancelRequested() | EventSent():
                evidence.messages.append(record)
            case _:
                pass
    return evidence


EFFECT_ENTRIES = (
    EffectIntended, EffectSuspected, EffectRecovered, EffectDone, EffectRaised, EffectDoubted, EffectUnstorable,
    EffectSettled,
)  # fmt: skip


def fallbacks_before(sealer: Sealer, kept: Sequence[Record], aside: Sequence[Record]) -> list[FellBack] | None:
    """Earlier fallbacks that are set aside themselves: the entries they lost are still lost. None: not known.

    Every operation that sets records aside leaves a copy of its own record there, so if one copy is lost, the other
    remains.
    """
    standing = {record.seal for record in kept}
    found: dict[bytes, FellBack] = {}
    told: set[int] = set()
    for record, entry in _looked_at(sealer, kept, aside):
        if isinstance(entry, FellBack):
            told.add(record.seq)
            if record.seal not in standing:
                found[record.seal] = entry
    if any(record.kind == KIND_OF[FellBack] and record.seq not in told for record in aside):
        return None
    return list(found.values())


def _whole(sealer: Sealer, kept: Sequence[Record], aside: Sequence[Record]) -> Iterable[tuple[Record, Entry | None]]:
    """The entries of records that are whole by themselves; None where something is missing or damaged in between."""
    last: Record | None = None
    for record, entry in _looked_at(sealer, kept, aside):
        # Each has to follow the record directly before it: rows of several fallbacks may have matching numbers.
        if last is None or record.seq != last.seq + 1 or not sealer.holds(record, last.seal):
            yield record, None
        last = record
        yield record, entry


def _looked_at(
    sealer: Sealer, kept: Sequence[Record], aside: Sequence[Record]
) -> Iterable[tuple[Record, Entry | None]]:
    """Each record that was set aside, with its entry if it is whole by itself."""
    for record, is_whole in set_aside(sealer, kept, aside):
        entry = None
        with suppress(Stopped):  # written by a newer version: whole, but unreadable here
            entry = from_record(record) if is_whole else None
        yield record, entry
