"""The one auditor of journals: which entries hold, what is wrong with the first that does not, what is whole after it.

An entry holds if it comes right after the one before, its seal holds on the seal before, and it can be read. A journal holds
if all its entries do and the last one is the one that its head names. The caller decides where the records come from
(a store, a damaged file, an export) and what is done about a break. So records are handed in one at a time: some
readers meet a row that cannot be read, some read lines of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from surefoot.core.cure import Cures
from surefoot.core.entry import Entry
from surefoot.core.seal import GENESIS, Record, Sealer, from_record
from surefoot.errors import JournalCorrupt, Stopped

Place = tuple[int, bytes]
"""A position in a journal, and the seal of the record there."""
Read = Callable[[Record], Entry | None]

BEGINNING: Place = (0, GENESIS)


class Break(Struct, frozen=True):
    """Where a journal is not what was written."""

    entry: int
    """The first entry that cannot be used."""
    why: str
    valid: int
    """The number of entries, from the first on, that hold."""
    record: Record | None = None
    """What was found there."""
    cures: Cures | None = None
    """What helps, if that is not what helps against damage."""


class Audit:
    """One pass over a journal. `read` makes an entry of a record that holds; an exception of type `damage` is a break.

    `behind` reads what is whole by itself after a break. Without `behind`, nothing after the break is decoded.
    Nothing after a break is ever folded or merged.
    """

    def __init__(
        self,
        sealer: Sealer,
        *,
        after: Place = BEGINNING,
        read: Read = from_record,
        behind: Read | None = None,
        damage: tuple[type[Stopped], ...] = (JournalCorrupt,),
    ) -> None:
        self.end = after
        """The last entry that holds, with all entries before it."""
        self.found: Break | None = None
        """The first thing that is wrong."""
        self.beyond = 0
        """The number of entries behind it that are whole by themselves: their seals hold on the record before."""
        self._last = after
        self._sealer = sealer
        self._read = read
        self._read_behind = behind
        self._damage = damage

    @property
    def valid(self) -> int:
        return self.end[0]

    def take(self, record: Record) -> Entry | None:
        """The next record, as found. Its entry, if it is whole; else None."""
        before, previous = self._last
        self._last = (record.seq, record.seal)
        if record.seq != before + 1 or not self._sealer.holds(record, previous):
            self._blame(record)
            return None
        if self.found is not None:
            return self._behind(record)
        try:
            entry = self._read(record)
        except self._damage as error:
            cures = None if isinstance(error, JournalCorrupt) else error.remedies
            self.blame(error.summary, record, cures)
            return None
        self.end = self._last
        return entry

    def take_all(self, records: Iterable[Record]) -> None:
        for record in records:
            self.take(record)

    def blame(self, why: str, record: Record | None = None, cures: Cures | None = None) -> None:
        """The next entry cannot be used."""
        self.found = self.found or Break(self.valid + 1, why, self.valid, record, cures)

    def ends(self, head: Place | None) -> Break | None:
        """All records were handed in. What is wrong with the journal, if anything is."""
        return self.found or self._head_wrong(head)

    def _blame(self, record: Record) -> None:
        size = f"({len(record.body)} bytes)"
        if record.seq > self.valid + 1:
            self.blame(f"it is missing, the next one found is {record.seq}", record)
        elif record.seq == self.valid + 1:
            self.blame(f"its seal does not hold {size}", record)
        else:
            self.blame(f"there is a second entry {record.seq} {size}", record)

    def _behind(self, record: Record) -> Entry | None:
        self.beyond += 1
        try:
            return None if self._read_behind is None else self._read_behind(record)
        except Stopped:
            return None

    def _head_wrong(self, head: Place | None) -> Break | None:
        seq, valid = (None if head is None else head[0]), self.valid
        if seq is None:
            why = "its head is missing, so nobody can say whether there was more" if valid else _NOTHING
            return Break(valid + 1, why, valid)
        if seq > valid:
            return Break(valid + 1, f"it is missing: the journal ends at {valid}, but its head says {seq}", valid)
        if seq < valid:
            return Break(seq + 1, f"{valid - seq} entries lie behind the head", seq)
        return None if head == self.end else Break(seq, "it is not the one that the head names", seq - 1)


def set_aside(sealer: Sealer, standing: Iterable[Record], aside: Sequence[Record]) -> Iterator[tuple[Record, bool]]:
    """Each record that was set aside, and whether it is whole by itself: its seal holds on the seal of a record before
    it that stands, or stood.
    """
    seals: dict[int, set[bytes]] = {record.seq - 1: set() for record in aside}
    for record in (*standing, *aside):
        if record.seq in seals:
            seals[record.seq].add(record.seal)
    seals.setdefault(0, set()).add(GENESIS)
    for record in aside:
        yield record, any(sealer.holds(record, previous) for previous in seals[record.seq - 1])


_NOTHING = "nothing of it can be found"
