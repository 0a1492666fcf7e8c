"""Checks everything in a store, and changes nothing: is each journal whole, and if not, what is safe?

A journal is whole if every seal holds on the one before, every entry can follow the one before, every part that
its values need matches its name, and the last entry is the one that its head names. Values themselves are not
joined: the seal covers the recipe and the recipe names its parts, so whole parts make whole values, and parts
that many values share are checked once.

Journals are read in batches, each with the head of the same moment, so a store may be in use meanwhile. A journal
that seems damaged is checked again if it was written to in between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core.audit import Audit, Break, set_aside
from surefoot.core.cure import Advice, Cures, command
from surefoot.core.parts import NODE, Part, Reference, damaged_parts, fault, reachable
from surefoot.core.seal import Record, Sealer, from_record, references
from surefoot.core.state import RunState
from surefoot.engine.process.journal import damaged_cures, index_row
from surefoot.engine.process.whereabouts import in_its_store
from surefoot.errors import CodecMissing, Damaged, JournalCorrupt, SchemaMismatch, Stopped, StoreUnavailable
from surefoot.store.contract import RESERVED, Head, Index, IndexRow, Journals, RunQuery, Store, Stored, Upkeep
from surefoot.store.rules import is_run
from surefoot.store.threads import PREFIX as THREAD

UNKNOWN: Final = -1
_BATCH: Final = 512
_PARTS_PER_LOOK: Final = 500
_LOOKS: Final = 3
_NODES_KEPT: Final = 64 * 1024 * 1024
"""The bytes of nodes that are kept in memory, since they have to be followed."""
_ALL: Final = 2**62


class Flaw(Struct, frozen=True):
    """Where a journal (or the store itself: no name) is damaged, and what is still safe."""

    journal: str
    why: str
    entry: int = 0
    """The first entry that cannot be used; 0: the entries are sound, something about them is not."""
    entries: int = UNKNOWN
    """How many there are, according to the head."""
    valid: int = 0
    """The number of entries, from the first on, that are whole."""
    cures: Cures = ()

    def __str__(self) -> str:
        if not self.journal:
            return f"the store: {self.why}"
        what = f"{called(self.journal)}: "
        if self.entry:
            what += f"entry {self.entry} of {'?' if self.entries == UNKNOWN else self.entries}: "
        return f"{what}{self.why}; {self.safe}"

    @property
    def safe(self) -> str:
        """The data that can be relied on now, in words."""
        if not self.entry:
            return f"its {self.valid} entries are whole"
        if not self.valid:
            return "no entry is safe"
        return "entry 1 is whole" if self.valid == 1 else f"entries 1 to {self.valid} are whole"

    def error(self) -> JournalCorrupt:
        return JournalCorrupt(
            f"{self}. Nothing was changed.",
            run_id=self.journal if is_run(self.journal) else "",
            facts={"entry": self.entry, "valid": self.valid},
            cures=self.cures,
        )


class VerifyResult(Struct, frozen=True):
    """The checked data, and the findings."""

    runs: int
    journals: int
    """Runs, and journals that are no runs (checkpoints)."""
    entries: int
    bytes: int
    """Bytes of entries and of parts, decompressed."""
    parts: int
    """The number of parts that are needed."""
    unneeded: int
    """The number of parts that are not: no damage, only space (`surefoot prune`)."""
    quarantined: int
    """Entries that earlier fallbacks set aside."""
    flaws: list[Flaw]


class Progress(Struct, frozen=True):
    journals: int
    of: int
    bytes: int


Watch = Callable[[Progress], object]


def called(name: str) -> str:
    """A journal's name for people."""
    if is_run(name):
        return f"run {name}"
    return name[len(RESERVED) :].replace(RESERVED, " ")


@in_its_store
def verify_run(store: Store, run: str) -> int:
    """Check every seal, part, the chain and the head of one journal. Returns the number of entries; or JournalCorrupt."""
    seen = check(store, run, PartsSeen(store))
    if seen.flaw is not None:
        raise seen.flaw.error()
    return seen.entries


def verify_store(store: Store, names: Sequence[str] | None = None, *, watch: Watch | None = None) -> VerifyResult:
    """Check everything, or the named journals. Damage is a result here, not an error."""
    return Verification(store).verdict(names, watch=watch)


class Verification:
    """One check of a store. `needed` are the parts that were found needed and whole."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts = PartsSeen(store)
        self.needed = self._parts.sound
        self._flaws: list[Flaw] = []
        self._journals: list[str] = []
        self._entries = 0
        self._bytes = 0

    def verdict(self, names: Sequence[str] | None = None, *, watch: Watch | None = None) -> VerifyResult:
        everything = names is None
        wanted = self._names() if names is None else list(names)
        self._journals = wanted
        try:
            # SQLite's own check of its pages is one long call: it runs beside ours.
            with ThreadPoolExecutor(1) as beside:
                pages = beside.submit(self._store.flaws) if everything else None
                if everything:
                    self._parts.look_ahead(lambda seen: watch and watch(Progress(0, len(wanted), seen)))
                self._look_at(wanted, watch)
            if pages is not None:
                self._flaws += [_file_flaw(self._store, why) for why in pages.result()]
                if why := self._store.anchor_flaw():
                    self._flaws.append(Flaw("", why, cures=_file_cures(self._store)))
            unneeded = self._unneeded() if everything else 0
            quarantined = sum(len(self._store.quarantined(name)) for name in wanted)
        except StoreUnavailable as error:
            if not self._flaws:
                raise
            self._flaws.append(Flaw("", f"the rest could not be read: {error}", cures=_file_cures(self._store)))
            unneeded = quarantined = 0
        runs, size, parts = sum(map(is_run, wanted)), self._bytes + self._parts.bytes, len(self._parts.sound)
        return VerifyResult(runs, len(wanted), self._entries, size, parts, unneeded, quarantined, self._flaws)

    def again(self, names: Iterable[str]) -> list[Flaw]:
        """Check these journals too (they were written to meanwhile)."""
        found = [check(self._store, name, self._parts).flaw for name in names]
        return [flaw for flaw in found if flaw is not None]

    def _names(self) -> list[str]:
        try:
            return self._store.names()
        except JournalCorrupt as error:
            self._flaws.append(_file_flaw(self._store, f"the list of journals cannot be read: {error.summary}"))
            return []

    def _look_at(self, names: list[str], watch: Watch | None) -> None:
        rows = self._rows()
        for number, name in enumerate(names):
            seen = check(self._store, name, self._parts)
            self._entries += seen.entries
            self._bytes += seen.bytes
            flaw = seen.flaw
            if flaw is None and rows is not None and seen.row is not None and rows.get(name) != seen.row:
                flaw = self._listed_wrong(name)
            if flaw is not None:
                self._flaws.append(flaw)
            if watch is not None:
                watch(Progress(number + 1, len(names), self._bytes + self._parts.bytes))

    def _rows(self) -> dict[str, IndexRow | None] | None:
        """The list of runs. None, if it cannot be read at all."""
        try:
            return _rows(self._store)
        except JournalCorrupt as error:
            self._flaws.append(_file_flaw(self._store, error.summary))
            return None

    def _listed_wrong(self, name: str) -> Flaw | None:
        """Whether the list of runs really disagrees with the journal: both are read again, until nothing changes."""
        for _ in range(_LOOKS):
            before = self._store.read(name, 0, 0).head
            row = _rows(self._store).get(name)
            seen = check(self._store, name, self._parts)
            if seen.flaw is not None or row == seen.row:
                return seen.flaw
            if self._store.read(name, 0, 0).head == before:
                return _list_flaw(name, row, seen)
        return None  # it is being written to all the time, and was consistent each time

    def _unneeded(self) -> int:
        """The number of parts that no journal and no set-aside record needs; unknown while there is damage."""
        if self._flaws:
            return 0
        return len(set(self._store.part_ids()) - self.needed - aside(self._store, self._journals))


def _rows(store: Index) -> dict[str, IndexRow | None]:
    return {listed.run: listed.row and _comparable(listed.row) for listed in store.runs(RunQuery(limit=_ALL))}


def _comparable(row: IndexRow) -> IndexRow:
    """The row without the position and the next worker: a row is renewed when the status changes, not with every entry,
    and a check of children changes only the time.
    """
    return replace(row, seq=0, wake=None, worker="", reason="")


def aside(store: Store, names: Iterable[str]) -> set[bytes]:
    """The parts that quarantined entries name, as far as the entries are whole by themselves."""
    named: set[bytes] = set()

    def fetch(ids: Sequence[bytes]) -> dict[bytes, Part]:
        named.update(ids)
        return store.parts(ids)

    for name in names:
        for record in _whole_aside(store, name):
            with suppress(Stopped):  # unreadable references cannot be followed
                for reference in references(from_record(record)):
                    damaged_parts(reference, fetch)
    return named


def _whole_aside(store: Store, name: str) -> list[Record]:
    """The quarantined records whose seals hold, each on the seal of a record that stands or stood before it.

    The others are not decoded: their origin is unknown.
    """
    records = store.quarantined(name)
    places = [record.seq - 1 for record in records]
    standing = _standing(store, name, min(places, default=0), max(places, default=0))
    return [record for record, whole in set_aside(Sealer(store.id, name), standing, records) if whole]


def _standing(store: Journals, name: str, first: int, last: int) -> Iterator[Record]:
    after = max(first - 1, 0)
    while after < last and (found := store.read(name, after, _BATCH).records):
        yield from found
        after = found[-1].seq


# --- one journal ---------------------------------------------------------------------------------------


class Checked(Struct, frozen=True):
    """The result for one journal."""

    entries: int
    bytes: int
    flaw: Flaw | None = None
    row: IndexRow | None = None
    """The right row of the run list; None: it is no run, or it is damaged."""


def check(store: Store, name: str, parts: PartsSeen) -> Checked:
    for _ in range(_LOOKS):
        walk = _Walk(store, name, parts)
        seen = walk.checked()
        if seen.flaw is None or walk.head == head_of(store, name):
            return seen
    return seen


def head_of(store: Journals, name: str) -> Head | None:
    with suppress(Damaged):
        return store.read(name, 0, 0).head
    return None


def batches(store: Journals, name: str) -> Iterator[Stored | JournalCorrupt]:
    """The records of a journal, each batch with the head of its moment. An unreadable row is returned as the store's
    error; the rows after it follow.
    """
    after, size = 0, _BATCH
    while True:
        try:
            stored = store.read(name, after, size)
        except JournalCorrupt as error:
            if size > 1:
                size = 1  # one of them is unreadable: from here on, one by one
                continue
            yield error
            after += 1
            head = head_of(store, name)
            if head is None or after > head.seq:
                return
            continue
        yield stored
        if len(stored.records) < size:
            return
        after = stored.records[-1].seq


class _Walk:
    """One pass over a journal, from its first entry to its head."""

    def __init__(self, store: Store, name: str, parts: PartsSeen) -> None:
        self.head: Head | None = None
        self._store = store
        self._name = name
        self._parts = parts
        self._state = RunState(name) if is_run(name) else None
        self._audit = Audit(
            Sealer(store.id, name),
            read=from_record if self._state is None else self._state.fold,
            damage=(JournalCorrupt, CodecMissing, SchemaMismatch),
        )
        self._bytes = 0

    def checked(self) -> Checked:
        broken = self._walk()
        if broken is not None:
            entries = UNKNOWN if self.head is None else self.head.seq
            cures = broken.cures if broken.cures is not None else _cures(self._store, self._name)
            flaw = Flaw(self._name, broken.why, broken.entry, entries, broken.valid, cures)
            return Checked(broken.valid, self._bytes, flaw)
        row = None if self._state is None else _comparable(index_row(self._state))
        return Checked(self._audit.valid, self._bytes, row=row)

    def _walk(self) -> Break | None:
        for stored in batches(self._store, self._name):
            if isinstance(stored, JournalCorrupt):
                self._audit.blame(self._unreadable(stored), cures=_file_cures(self._store))
                return self._audit.found
            self.head = stored.head
            needed: list[tuple[int, Reference]] = []
            for record in stored.records:
                entry = self._audit.take(record)
                if entry is None or self._audit.found is not None:
                    break
                self._bytes += len(record.body)
                needed += [(record.seq, reference) for reference in references(entry)]
            # Entries before a break count as safe only if their values are there.
            if needed and (bad := self._parts.first_bad(needed)) is not None:
                entry_of, why = bad
                return Break(entry_of, f"it is sound, but a value of it is damaged: {why}", entry_of - 1)
            if self._audit.found is not None:
                return self._audit.found
        return self._audit.ends(None if self.head is None else (self.head.seq, self.head.seal))

    def _unreadable(self, error: JournalCorrupt) -> str:
        try:
            self.head = self._store.read(self._name, 0, 0).head
        except JournalCorrupt:
            return f"its head cannot be read: {error.summary}"
        return f"it cannot be read: {error.summary}"


class PartsSeen:
    """Checks each part once, for all values that need it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.sound: set[bytes] = set()
        self.bytes = 0
        self._whole: dict[bytes, int] = {}
        """Parts that match their names, with their sizes, needed or not."""
        self._nodes: dict[bytes, Part] = {}
        self._room = _NODES_KEPT

    def look_ahead(self, watch: Callable[[int], object]) -> None:
        """Check all parts in stored order: much faster than one by one, when most are needed."""
        after, seen = 0, 0
        while True:
            try:
                rows = self._store.scan_parts(after, _PARTS_PER_LOOK)
            except JournalCorrupt:
                return  # if a page is damaged, each part is checked when it is needed
            for _, part in rows:
                seen += self._glance(part)
            watch(seen)
            if len(rows) < _PARTS_PER_LOOK:
                return
            after = rows[-1][0]

    def _glance(self, part: Part) -> int:
        """Remember a whole part. Nodes are checked when they are followed."""
        if part.kind == NODE:
            if self._room > 0 and type(part.id) is bytes and type(part.body) is bytes:
                self._nodes[part.id] = part
                self._room -= len(part.body)
            return 0
        if fault(part):
            return 0
        self._whole[part.id] = part.size
        return part.size

    def first_bad(self, needed: list[tuple[int, Reference]]) -> tuple[int, str] | None:
        """The first entry with a damaged value, and the damage."""
        for _ in range(_LOOKS):
            nodes: dict[bytes, Part] = {}
            try:
                reached = reachable((reference for _, reference in needed), partial(self._followed, nodes))
                self._found_sound(nodes.values())  # each of them was checked before it was followed
                why = self._look(reached - self.sound)
            except Damaged as error:
                why = error.summary
            if not why:
                return None
            for entry, reference in needed:
                if found := self._damage(reference):
                    return entry, found
        return needed[0][0], why  # the parts keep changing during the check

    def _followed(self, nodes: dict[bytes, Part], ids: Sequence[bytes]) -> Mapping[bytes, Part]:
        found = {name: self._nodes[name] for name in ids if name in self._nodes}
        if rest := [name for name in ids if name not in found]:
            found.update(self._store.parts(rest))
        nodes.update(found)
        return found

    def _look(self, names: set[bytes]) -> str:
        """Check parts against their names. Returns the fault of one of them, or nothing."""
        known = {name for name in names if name in self._whole}
        self.sound |= known
        self.bytes += sum(self._whole[name] for name in known)
        wanted = list(names - known)
        for at in range(0, len(wanted), _PARTS_PER_LOOK):
            chunk = wanted[at : at + _PARTS_PER_LOOK]
            found = self._store.parts(chunk)
            if len(found) < len(chunk):
                return "is missing"
            if wrong := next(filter(None, map(fault, found.values())), ""):
                return wrong
            self._found_sound(found.values())
        return ""

    def _found_sound(self, parts: Collection[Part]) -> None:
        new = [part for part in parts if part.id not in self.sound]
        self.sound.update(part.id for part in new)
        self.bytes += sum(part.size for part in new)

    def _damage(self, reference: Reference) -> str:
        try:
            bad = damaged_parts(reference, self._store.parts)
        except Damaged as error:
            return error.summary
        more = f" (and {len(bad) - 1} more parts are damaged)" if len(bad) > 1 else ""
        return next((f"part {name.hex()[:16]}… {why}{more}" for name, why in bad.items()), "")


# --- the words ----------------------------------------------------------------------------------------


def _cures(store: Upkeep, name: str) -> Cures:
    if is_run(name):
        return (*damaged_cures(name)[1:], *_file_cures(store))
    if name.startswith(THREAD):
        back = Advice("the graph", "goes on from the newest checkpoint that is whole, and says so")
        return (back, *_file_cures(store))
    return (Advice("load()", "falls back to the newest generation that is whole, and says so"), *_file_cures(store))


def _file_cures(store: Upkeep) -> Cures:
    return (command("inspect", path=store.file, when="look inside"),) if store.file else ()


def _file_flaw(store: Upkeep, why: str) -> Flaw:
    restore = Advice("have a copy?", "keep this file as evidence, and put back a copy that is whole")
    return Flaw("", why, cures=(*_file_cures(store), restore))


def _list_flaw(name: str, row: IndexRow | None, seen: Checked) -> Flaw:
    why = "its line in the list of runs is missing or damaged"
    if row is not None and seen.row is not None:
        why = f"the list of runs has it as {row.status}, its journal says {seen.row.status}"
        if row.status == seen.row.status:
            why = "its line in the list of runs says something else than its journal"
    return Flaw(name, why, entries=seen.entries, valid=seen.entries, cures=damaged_cures(name)[1:])
