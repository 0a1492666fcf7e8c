"""Journals of threads: the checkpoints of a framework that decides itself what runs next, and what its tasks wrote.

A thread has namespaces, forks and pending writes, and keeps all checkpoints until somebody prunes it. Each checkpoint is a
whole state, so records are judged one by one (`chain.py`). What cannot be read is counted and named: it is never taken
for nothing. Nothing is deleted or set aside except by a rewrite, under the same comparison as an append.

Not thread-safe: `engine/threads.py` holds a lock for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from surefoot.core.entry import Entry, Kept, RunLeft, RunMoved, ThreadCleared, ThreadSaved, ThreadWrote, Value
from surefoot.core.parts import Cut, Whole, expand
from surefoot.core.seal import GENESIS, Record, Sealer, checked_body, from_record
from surefoot.core.visible import visible
from surefoot.errors import CodecMissing, Damaged, SchemaMismatch, Stopped
from surefoot.store import chain
from surefoot.store.contract import RESERVED, Extend, Head, Journals, Rewrite, Store, Stored
from surefoot.store.departed import moved_away

PREFIX: Final = f"{RESERVED}thread{RESERVED}"
_STORE: Final = f"{RESERVED}store"
_READ_AGAIN: Final = 32
"""Every so many checkpoints all that the newest one consists of is read again."""

_MOST_KNOWN: Final = 4
"""Subgraphs have namespaces by the hundred, and each state that is held takes memory."""


class Key(NamedTuple):
    """Names a checkpoint within its thread."""

    ns: str
    id: str


class Saved(Struct, frozen=True):
    """A checkpoint as found: its seal holds. Whether its state can be put together is seen when it is read."""

    record: Record
    entry: ThreadSaved

    @property
    def key(self) -> Key:
        return Key(self.entry.ns, self.entry.id)


class Wrote(Struct, frozen=True):
    record: Record
    entry: ThreadWrote


class Unread(Struct, frozen=True):
    """Something that stands in the journal and cannot be read."""

    seq: int
    why: str


class Folded:
    """What a thread's journal says."""

    def __init__(self) -> None:
        self.head: Head | None = None
        """As found, right or wrong."""
        self.seq = 0
        self.saved: dict[str, dict[str, Saved]] = {}
        """By namespace and id; in each namespace in the order in which they were saved."""
        self.wrote: dict[Key, list[Wrote]] = {}
        self.others: list[Record] = []
        """What else stands here, sound, and stays when the journal is rewritten."""
        self.unread: list[Unread] = []
        self.left: tuple[Record, RunLeft] | None = None
        """What says that the thread is in another store now."""
        self.doubt = ""
        """What is wrong with the note of the newest record."""

    @property
    def damaged(self) -> bool:
        return bool(self.unread or self.doubt)

    @property
    def flaws(self) -> str:
        """What is wrong, in words."""
        told = [f"record {one.seq} {one.why}" for one in self.unread[:5]]
        told += [f"and {len(self.unread) - 5} more"] * (len(self.unread) > 5)
        return "; ".join([*told, self.doubt] if self.doubt else told)

    def get(self, key: Key) -> Saved | None:
        return self.saved.get(key.ns, {}).get(key.id)

    def checkpoints(self) -> list[Saved]:
        """All of them, in the order in which they were saved."""
        found = [one for ids in self.saved.values() for one in ids.values()]
        return sorted(found, key=lambda one: one.record.seq)

    def sound(self) -> list[Record]:
        """Every record that can be read, in order, without those that others took the place of."""
        wrote = [one.record for many in self.wrote.values() for one in many]
        return sorted([one.record for one in self.checkpoints()] + wrote + self.others, key=lambda record: record.seq)

    def take(self, record: Record, entry: Entry) -> None:
        self.seq = record.seq
        if isinstance(entry, ThreadSaved):
            self.saved.setdefault(entry.ns, {})[entry.id] = Saved(record, entry)
        elif isinstance(entry, ThreadWrote):
            self.wrote.setdefault(Key(entry.ns, entry.id), []).append(Wrote(record, entry))
        elif isinstance(entry, ThreadCleared | RunMoved):
            self.others.append(record)
        elif isinstance(entry, RunLeft):
            self.left = record, entry
        else:
            self.unread.append(Unread(record.seq, "is damaged: it is not what belongs in this place"))


class ThreadJournal:
    """The journal of one thread in one store, folded as far as it was read."""

    def __init__(self, store: Store, thread: str) -> None:
        self.store = store
        self.thread = thread
        self.run = PREFIX + thread
        self._sealer = Sealer(store.id, self.run)
        self._folded: Folded | None = None
        self._whole = Whole()
        self._cut: dict[str, Cut] = {}
        """The state that was cut last, by namespace: the next one is much the same. Nothing says that it was stored."""
        self._saves = 0

    # --- reading ---------------------------------------------------------------------------------------

    def refresh(self) -> Folded:
        """What the journal says now. Only what is new is read, as long as all is well."""
        folded = self._folded
        if folded is None or folded.damaged or not self._continues(folded):
            folded = self._folded = self._read()
        self._require_here(folded)
        return folded

    def _require_here(self, folded: Folded) -> None:
        if folded.left is not None:
            name, here = f"thread {visible(self.thread)}", self.store.url
            record, entry = folded.left
            raise moved_away(name, entry, record.at, here, is_done=record.seq == 1)

    @property
    def known(self) -> Folded:
        """What it said when it was last read or written."""
        if self._folded is None:
            return self.refresh()
        self._require_here(self._folded)
        return self._folded

    def forget(self) -> None:
        """Whether a write that broke off has arrived is not known: the next look reads everything."""
        self._folded = None

    def value(self, value: Value) -> bytes:
        """A value of an entry, whole. `Damaged` if that is not to be had."""
        return expand(value.reference, self.store.parts) if isinstance(value, Kept) else bytes(value)

    def check(self, value: Value) -> None:
        """Read all that a value consists of. `Damaged` if it is not whole."""
        if isinstance(value, Kept):
            self._whole.check(value.reference, self.store.parts)

    def _continues(self, folded: Folded) -> bool:
        """Fold what was written since. False: what is there does not go on from what we know."""
        try:
            stored = self.store.read(self.run, after=folded.seq)
        except Damaged:
            return False
        if stored.records:
            known = folded.head
            links = chain.Chain(self._sealer, folded.seq, GENESIS if known is None else known.seal)
            for record in stored.records:
                if links.lacks_one_before(record) or links.fault(record):
                    return False
                folded.take(record, self._entry(record))
        last = stored.records[-1] if stored.records else None
        end = folded.head if last is None else Head(last.seq, last.seal)
        folded.head = stored.head
        return stored.head == end

    def _read(self) -> Folded:
        stored, unread = chain.read(self.store, self.run)
        folded = Folded()
        folded.head = stored.head
        links = chain.Chain(self._sealer)
        for record in stored.records:
            if links.lacks_one_before(record):
                folded.unread += [Unread(seq, "is missing") for seq in _between(folded.seq, record.seq)]
            self._judge(folded, record, links.fault(record))
        self._look_at_end(folded, stored, unread)
        return folded

    def _judge(self, folded: Folded, record: Record, why: str) -> None:
        folded.seq = record.seq
        try:
            entry = None if why else self._entry(record)
        except (CodecMissing, SchemaMismatch):
            raise
        except Damaged:
            entry, why = None, "is damaged: its seal holds, but it cannot be read"
        if entry is None:
            folded.unread.append(Unread(record.seq, why))
        else:
            folded.take(record, entry)

    def _look_at_end(self, folded: Folded, stored: Stored, unread: str) -> None:
        head, last = stored.head, stored.records[-1] if stored.records else None
        if head is None and last is None and not unread:
            return
        if head is not None and head.seq > folded.seq:
            folded.unread += [Unread(seq, "is missing") for seq in _between(folded.seq, head.seq + 1)]
        folded.doubt = chain.doubt(head, last, "record") or unread

    def _entry(self, record: Record) -> Entry:
        try:
            return from_record(record)
        except (CodecMissing, SchemaMismatch) as error:
            raise self._named(error) from error

    def _named(self, error: Stopped) -> Stopped:
        return type(error)(
            f"thread {visible(self.thread)}: a record was written by a newer version of surefoot.",
            facts=error.facts,
            cures=error.remedies,
        )

    # --- writing ---------------------------------------------------------------------------------------

    def append(self, entry: ThreadSaved | ThreadWrote, at: int) -> bool:
        """Write behind all that is known. False: somebody else wrote meanwhile, and nothing was written.

        In a damaged journal what can be read is sealed anew, as a chain, and what cannot goes to the quarantine.
        """
        folded = self.known
        kind, body, cuts = self._body(entry)
        if folded.damaged:
            why = f"set aside as damaged: {folded.flaws}"
            return self._rewrite(folded, why, folded.sound(), at, new=(kind, body, cuts), archive=True)
        head = folded.head
        seq, seal = (0, GENESIS) if head is None else (head.seq, head.seal)
        record = self._sealer.seal(seq=seq + 1, epoch=0, at=at, kind=kind, body=body, previous=seal)
        if not self._write(Extend(self.run, head, [record], cuts=cuts)):
            return False
        folded.take(record, from_record(record))
        folded.head = Head(record.seq, record.seal)
        self._read_now_and_then(entry, cuts)
        return True

    def _write(self, wish: Extend) -> bool:
        try:
            (conflict,) = self.store.append([wish])
        except BaseException:
            self.forget()
            raise
        return conflict is None

    def keep(self, why: str, stay: Sequence[Record], at: int, *, forget: bool = False) -> bool:
        """Leave these records and delete all others. False: somebody wrote meanwhile, and nothing was done."""
        return self._rewrite(self.known, why, stay, at, archive=False, forget=forget)

    def fill(self, entries: Sequence[ThreadSaved | ThreadWrote], at: int) -> bool:
        """Write these into a thread that is empty, all or none. False: somebody else wrote meanwhile."""
        packed = [self._body(entry) for entry in entries]
        records = self._sealed(((at, kind, body) for kind, body, _ in packed), self.known.head)
        cuts = [cut for _, _, many in packed for cut in many]
        return self._write(Extend(self.run, self.known.head, records, cuts=cuts)) and self._took(records)

    def copy_from(self, other: ThreadJournal, at: int) -> bool:
        """All records of another thread, sealed for this one, which must be empty. The parts are shared."""
        bodies = [(record.at, record.kind, record.body) for record in other.known.sound()]
        records = self._sealed(bodies, self.known.head)
        return not records or (self._write(Extend(self.run, self.known.head, records)) and self._took(records))

    def _took(self, records: Iterable[Record]) -> bool:
        for record in records:
            self.known.take(record, from_record(record))
            self.known.head = Head(record.seq, record.seal)
        return True

    def _rewrite(
        self,
        folded: Folded,
        why: str,
        stay: Sequence[Record],
        at: int,
        *,
        archive: bool,
        new: tuple[int, bytes, Sequence[Cut]] | None = None,
        forget: bool = False,
    ) -> bool:
        kind, body, _ = checked_body(ThreadCleared(why))
        bodies = [(at, kind, body), *((record.at, record.kind, record.body) for record in stay)]
        if new is not None:
            bodies.append((at, new[0], new[1]))
        cuts = () if new is None else new[2]
        item = Rewrite(self.run, folded.head, 0, self._sealed(bodies, None), cuts=cuts, archive=archive, forget=forget)
        self.forget()
        return self.store.rewrite(item) is None

    def _sealed(self, bodies: Iterable[tuple[int, int, bytes]], head: Head | None) -> list[Record]:
        seq, seal = (0, GENESIS) if head is None else (head.seq, head.seal)
        records: list[Record] = []
        for at, kind, body in bodies:
            seq += 1
            records.append(self._sealer.seal(seq=seq, epoch=0, at=at, kind=kind, body=body, previous=seal))
            seal = records[-1].seal
        return records

    def _body(self, entry: Entry) -> tuple[int, bytes, tuple[Cut, ...]]:
        if not isinstance(entry, ThreadSaved):
            return checked_body(entry)
        kind, body, cuts = checked_body(entry, self._cut.pop(entry.ns, None))
        if cuts:
            self._cut[entry.ns] = cuts[0]
        if len(self._cut) > _MOST_KNOWN:
            self._cut.pop(next(iter(self._cut)))
        return kind, body, cuts

    def _read_now_and_then(self, entry: Entry, cuts: Sequence[Cut]) -> None:
        """Parts that are shared may have gone bad since they were written. Content at hand heals them, exactly."""
        if not isinstance(entry, ThreadSaved):
            return
        self._saves += 1
        if self._saves % _READ_AGAIN == 0 and cuts:
            try:
                for cut in cuts:
                    self._whole.check(cut.reference, self.store.parts)
            except CodecMissing:
                raise
            except Damaged:
                chain.heal(self.store, self.run, cuts)
                self.forget()


def threads(names: Iterable[str]) -> list[str]:
    """The ids of the threads among the names of a store's journals."""
    return sorted(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))


def adoption(store: Journals) -> str:
    """Names the last time that the store was adopted; empty: it never was."""
    try:
        head = chain.head_of(store, _STORE)
    except Damaged:
        return "?"  # it is there, so the store was adopted
    return "" if head is None else head.seal.hex()


def _between(seq: int, stop: int) -> range:
    return range(seq + 1, min(stop, seq + 1001))


def unknown_to(records: Iterable[Record], adopted: str) -> bool:
    """Whether none of these sound checkpoints was saved after the store was adopted."""
    saved = [entry for entry in map(from_record, records) if isinstance(entry, ThreadSaved)]
    return bool(saved) and all(one.adopted != adopted for one in saved)
