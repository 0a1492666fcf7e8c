"""Records that are judged one by one: each by its own seal, over the seal that stands before it.

A journal of a run is used up to its first flaw. Where each record is a whole (a generation, a checkpoint of a thread), one
that is damaged does not make those behind it worthless. What cannot be read is still known to be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from surefoot.core.parts import Cut, damaged_parts
from surefoot.core.seal import GENESIS, Record, Sealer
from surefoot.errors import Damaged
from surefoot.store.contract import Extend, Head, Journals, Store, Stored

_BEYOND: Final = 2**62
"""A position after any record: to read the head alone."""
_MOST_READS: Final = 100_000
_TRIES: Final = 100


class Chain:
    """Takes the records of a journal in order, and says of each whether it is exactly what was written there."""

    def __init__(self, sealer: Sealer, seq: int = 0, seal: bytes = GENESIS) -> None:
        self._sealer = sealer
        self._before: list[bytes] = [seal]
        """What the seal before the next record may be; none: that record is missing."""
        self.seq = seq
        """The last record that was taken."""

    def lacks_one_before(self, record: Record) -> bool:
        """Whether this is not the next record. It cannot be verified then: nobody knows the seal before it."""
        if record.seq == self.seq + 1:
            return False
        self._before = []
        return True

    def fault(self, record: Record) -> str:
        """What is wrong with the next record; empty: its seal holds."""
        before = self._before
        holds = any(self._sealer.holds(record, seal) for seal in before)
        # If only the seal was damaged, and not the sealed data, the next record was sealed over the right seal.
        resealed = [] if holds else [seal for previous in before if (seal := self._resealed(record, previous))]
        self._before, self.seq = [record.seal, *resealed], record.seq
        if holds:
            return ""
        return "is damaged: its seal does not hold" if before else "cannot be verified: the one before it is missing"

    def _resealed(self, record: Record, previous: bytes) -> bytes:
        try:
            return self._sealer.seal(
                seq=record.seq, epoch=record.epoch, at=record.at, kind=record.kind, body=record.body, previous=previous
            ).seal
        except Exception:  # noqa: BLE001 - a field outside its range is damage, whatever complains about it
            return b""


def read(store: Journals, run: str) -> tuple[Stored, str]:
    """All records; read one by one, if a damaged one prevents reading them together."""
    try:
        return store.read(run), ""
    except Damaged as error:
        return _read_each(store, run, error), "the journal cannot be read in one piece"


def head_of(store: Journals, run: str) -> Head | None:
    return store.read(run, after=_BEYOND, limit=1).head


def _read_each(store: Journals, run: str, damage: Damaged) -> Stored:
    try:
        head = head_of(store, run)
    except Damaged:
        raise damage from None
    records: list[Record] = []
    for after in range(min(head.seq if head is not None else _MOST_READS, _MOST_READS)):
        try:
            found = store.read(run, after=after, limit=1).records
        except Damaged:
            continue  # a hole: the record there counts as missing
        records += [record for record in found if record.seq == after + 1]
    return Stored(records, head)


def doubt(head: Head | None, last: Record | None, what: str) -> str:
    """The disagreement between the newest record and the head."""
    if head is None:
        return f"the note of the newest {what} is missing"
    if last is not None and last.seq > head.seq:
        return f"the note of the newest {what} is older than the journal"
    if last is not None and last.seq == head.seq and last.seal != head.seal:
        return f"the note of the newest {what} names another one"
    return ""


def heal(store: Store, run: str, cuts: Sequence[Cut]) -> None:
    """Write parts again that a save relied on, and that were damaged after the store last read them.

    The store relies on parts that it has read whole. Deleting the bad ones clears that knowledge; then an append
    without records writes what is missing, from the bytes at hand.
    """
    bad = sorted({name for cut in cuts for name in damaged_parts(cut.reference, store.parts)})
    for _ in range(_TRIES):  # another append in between makes us try again
        if not cuts or not store.discard(bad, store.changes()):
            continue
        if store.append([Extend(run, head_of(store, run), [], cuts=cuts)]) == [None]:
            return
