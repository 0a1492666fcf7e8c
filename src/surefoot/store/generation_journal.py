"""Generations in a journal of their own: each is an entry, sealed and chained like those of runs; large states are in parts.

A run's journal is used up to its first flaw. A generation is a whole state, so here each record is judged by itself: its
own seal, over the seal before it. Records are deleted or set aside only by a save, in the same transaction, under the same
comparison.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import msgspec

from surefoot.core.cure import command
from surefoot.core.entry import GenerationSaved, Kept
from surefoot.core.generation import LEAP, Saved, Seen, Shelved, plausible
from surefoot.core.parts import Whole, expand
from surefoot.core.seal import GENESIS, Record, Sealer, checked_body, from_record
from surefoot.errors import CodecMissing, CorruptCheckpoint, Damaged, SchemaMismatch, Stopped
from surefoot.store import chain
from surefoot.store.contract import RESERVED, Extend, Rewrite, Store
from surefoot.store.departed import came, require_here
from surefoot.store.generation_pages import not_read_back

_PREFIX: Final = f"{RESERVED}checkpoint{RESERVED}"
_STORE: Final = f"{RESERVED}store"
"""The journal of changes to the store as a whole. It is also the name of the witness under which a generation notes its
knowledge of that journal. No user's witness has such a name."""
_JUMP: Final = 1000
_NUMBER: Final = re.compile(rb'\{"generation":([1-9][0-9]{0,17})[,}]')
_PUT_TOGETHER: Final = 16
"""After this many generations, the saved state is not only checked part by part, but also joined and compared."""


class Prepared(msgspec.Struct, frozen=True):
    """A generation, sealed, and the append or rewrite that saves it."""

    number: int
    mark: bytes
    state: bytes
    wish: Extend | Rewrite


class JournalShelf:
    """The generations of one checkpoint in a store of journals."""

    def __init__(self, store: Store, name: str, whole: Whole) -> None:
        self.store = store
        self._whole = whole
        self.where = store.url
        self.run = _PREFIX + name
        self._name = name
        self._sealer = Sealer(store.id, self.run)
        self._holds_last = False
        """Whether the seal of the last record that was judged holds."""

    def held(self) -> AbstractContextManager[None]:
        """Nothing to hold: the store itself compares when it appends."""
        return nullcontext()

    # --- reading ---------------------------------------------------------------------------------------

    def look(self) -> Shelved | None:
        """All that is stored, each record judged. None only if nothing was ever saved."""
        stored, unread = chain.read(self.store, self.run)
        head, records = stored.head, stored.records
        if head is None and not records and not unread:
            return None
        seen = self._judged(records)
        if records and self._holds_last:
            require_here(f"checkpoint {self._name}", records, self.where)
        last = records[-1] if records else None
        missing = min(head.seq - (last.seq if last else 0), LEAP) if head is not None else 0
        if missing > 0:
            number = (seen[-1].number if seen else 0) + missing
            seen.append(Seen(number, why="is missing: the journal ends before it"))
        doubt = chain.doubt(head, last, "generation") or unread
        newest = max((one.number for one in seen), default=0)
        if doubt or any(one.why for one in seen):
            newest = max(newest, self._set_aside_before(newest) + max(missing, 0))
        mark = head.seal if head is not None else last.seal if last is not None else b"?"
        return Shelved(seen, newest, mark, doubt, stored)

    def state(self, seen: Seen) -> bytes:
        """The state of a sound generation, whole. `Damaged` if it cannot be read whole."""
        value = seen.source[1].state
        return expand(value.reference, self.store.parts) if isinstance(value, Kept) else bytes(value)

    def check(self, seen: Seen) -> None:
        """Read all parts of a sound generation. `Damaged` if it is not whole."""
        value = seen.source[1].state
        if isinstance(value, Kept):
            self._whole.check(value.reference, self.store.parts)

    def _judged(self, records: Sequence[Record]) -> list[Seen]:
        seen: list[Seen] = []
        links = chain.Chain(self._sealer)
        number = 0
        for record in records:
            if links.lacks_one_before(record):
                number += 1
                seen.append(Seen(number, why="is missing from the journal"))
            why = links.fault(record)
            self._holds_last = not why
            if not why and came(record):
                continue  # it says where those before it come from
            one = self._judge(record, why, number)
            seen.append(one)
            number = max(number, one.number)
        return seen

    def _judge(self, record: Record, why: str, number: int) -> Seen:
        if why:
            return Seen(plausible(number, record.epoch, _claimed(record.body)), why=why)
        try:
            entry = from_record(record)
        except (CodecMissing, SchemaMismatch) as error:
            return Seen(record.epoch, unknown=self._named(error, record.epoch))
        except Damaged:
            return Seen(plausible(number, record.epoch), why="is damaged: its seal holds, but it cannot be read")
        if not isinstance(entry, GenerationSaved) or entry.generation <= number:
            return Seen(plausible(number, record.epoch), why="is damaged: it is not what belongs in this place")
        size = entry.state.reference.size if isinstance(entry.state, Kept) else len(bytes(entry.state))
        return Seen(
            entry.generation, at=record.at, schema=entry.schema, host=entry.host, pid=entry.pid, size=size,
            watch={name: saw for name, saw in entry.watch.items() if name != _STORE}, specs=entry.specs, by=entry.by,
            note=entry.note, source=(record, entry),
        )  # fmt: skip

    def _named(self, error: Stopped, number: int) -> Stopped:
        return type(error)(
            f"checkpoint {self._name}: generation {number} was written by a newer version of surefoot.",
            facts=error.facts,
            cures=error.remedies,
        )

    def _set_aside_before(self, newest: int) -> int:
        """The highest number among records that earlier saves set aside. It is not used again either."""
        try:
            found = [record.epoch for record in self.store.quarantined(self.run)]
        except Damaged:
            return 0
        return max((number for number in found if number <= newest + LEAP), default=0)

    # --- a store that was adopted ------------------------------------------------------------------------

    def adopted_since(self, found: Shelved | None) -> bool:
        """Whether the store lost records, and a person accepted that, after all of these were saved.

        Judged by the notes in each generation, not by clocks: a generation of an older state cannot have noted it.
        """
        adopted = self._adopted()
        return bool(adopted) and not _knows(found, adopted)

    def _adopted(self) -> str:
        """The seal of the last adoption of the store; empty: it was never adopted."""
        try:
            stored = self.store.read(_STORE)
        except Damaged:
            return "?"  # the journal is there, so the store was adopted, though it cannot be read now
        last = stored.head or (stored.records[-1] if stored.records else None)
        return "" if last is None else last.seal.hex()

    def _next(self, found: Shelved | None, adopted: str) -> int:
        """The number of the next generation: none that was ever used, not even by generations that an adopted store lost.

        Each of them took a position in the store, and positions never go back, adopted or not. So no number is ahead of
        its position by more than the step taken here, and one step from the newest position is beyond them all.
        """
        number = 1 if found is None else found.newest + 1
        if not adopted or _knows(found, adopted):
            return number
        return max(number, self.store.changes() + _JUMP)

    # --- saving ----------------------------------------------------------------------------------------

    def prepare(self, found: Shelved | None, new: Saved, kept: Sequence[Seen] | None) -> Prepared:
        """The new generation after all others; or, if some are deleted, after those that are kept."""
        adopted = self._adopted()
        number = self._next(found, adopted)
        watch = new.watch if not adopted else {**new.watch, _STORE: {"adopted": adopted}}
        entry = GenerationSaved(
            number, new.schema, msgspec.Raw(new.state), new.host, new.pid, watch, new.specs, new.by, new.note
        )
        kind, body, cuts = checked_body(entry, self._whole.newest)
        self._whole.newest = next(iter(cuts), None)
        head = None if found is None else found.source.head
        if found is None or (kept is None and not found.damaged):
            seq, seal = (0, GENESIS) if head is None else (head.seq, head.seal)
            record = self._seal(seq + 1, number, new.at, kind, body, seal)
            return Prepared(number, record.seal, new.state, Extend(self.run, head, [record], cuts=cuts))
        stay = [one for one in found.seen if one.sound] if kept is None else list(kept)
        origins = [one for one in found.source.records if came(one)] if not found.damaged else []
        records = self._chained([*origins, *(one.source[0] for one in stay)])
        record = self._seal(len(records) + 1, number, new.at, kind, body, records[-1].seal if records else GENESIS)
        oldest = stay[0].number if stay else number
        left_out = {one.number for one in found.seen if one.number >= oldest} - {one.number for one in stay}
        archive = found.damaged or bool(left_out)  # damaged records go to the quarantine
        wish = Rewrite(self.run, head, 0, [*records, record], cuts=cuts, archive=archive)
        return Prepared(number, record.seal, new.state, wish)

    def _chained(self, old: Sequence[Record]) -> list[Record]:
        """The records that stay, sealed anew as a chain."""
        records: list[Record] = []
        for one in old:
            seal = records[-1].seal if records else GENESIS
            records.append(self._seal(len(records) + 1, one.epoch, one.at, one.kind, one.body, seal))
        return records

    def _seal(self, seq: int, number: int, at: int, kind: int, body: bytes, previous: bytes) -> Record:
        # The epoch of such a record is its generation: kept twice, one of the two survives most damage.
        return self._sealer.seal(seq=seq, epoch=number, at=at, kind=kind, body=body, previous=previous)

    def write(self, prepared: Prepared) -> bool:
        """Write it durably, and read it back whole. False: another process saved meanwhile, and nothing was written."""
        wish = prepared.wish
        conflict = self.store.rewrite(wish) if isinstance(wish, Rewrite) else self.store.append([wish])[0]
        if conflict is not None:
            return False
        try:
            why = self._fault(prepared)
            if why:
                chain.heal(self.store, self.run, prepared.wish.cuts)
                why = self._fault(prepared)
        except Damaged as error:
            raise self._unreadable(prepared.number, error.summary) from error
        if why:
            raise self._unreadable(prepared.number, why)
        return True

    def _fault(self, prepared: Prepared) -> str:
        """What is wrong with the generation that was just written, read again and whole."""
        found = self.look()
        mine = [] if found is None else [one for one in found.seen if one.number == prepared.number]
        if not mine or not mine[0].sound:
            return mine[0].why if mine else "it is not there"
        try:
            self.check(mine[0])
            return "" if self._is_same(mine[0], prepared) else "other bytes came back"
        except CodecMissing:
            raise
        except Damaged as error:
            return error.summary

    def _is_same(self, seen: Seen, prepared: Prepared) -> bool:
        """Whole parts form the bytes that were cut. At intervals they are also joined and compared."""
        value = seen.source[1].state
        if not isinstance(value, Kept) or prepared.number % _PUT_TOGETHER == 0:
            return self.state(seen) == prepared.state
        return any(cut.reference == value.reference for cut in prepared.wish.cuts)

    def _unreadable(self, number: int, why: str) -> CorruptCheckpoint:
        return not_read_back(self._name, number, self.where, why, command("verify", when="the store?"))


def checkpoints(names: Iterable[str]) -> list[str]:
    """The names of the checkpoints among those of a store's journals."""
    return sorted(name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))


def _knows(found: Shelved | None, adopted: str) -> bool:
    """Whether one of the generations was saved after this adoption."""
    seen = [] if found is None else found.seen
    return any(one.sound and one.source[1].watch.get(_STORE) == {"adopted": adopted} for one in seen)


def _claimed(body: bytes) -> int | None:
    """The number in the body of a damaged record, if there still is one. It is found by a search, not by decoding."""
    found = _NUMBER.match(body)
    return None if found is None else int(found[1])


def checkpoint_of(name: str) -> str | None:
    """The name of the checkpoint whose journal this is, if it is one."""
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None


def journal_of(checkpoint: str) -> str:
    return _PREFIX + checkpoint


def unknown_to(records: Iterable[Record], adopted: str) -> bool:
    """Whether none of these sound generations was saved after the store was adopted."""
    entries = (from_record(record) for record in records)
    return not any(
        isinstance(one, GenerationSaved) and one.watch.get(_STORE) == {"adopted": adopted} for one in entries
    )
