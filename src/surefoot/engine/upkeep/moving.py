"""Journals move from one store to another: none is lost, none is in two places, and none is driven in both.

Four steps, each one transaction, for the journals that belong together:
1. *Leave.* At the source `RunLeft` goes behind the head that was read and verified. From here on nobody writes into the
   journal there, and whoever asks for it is told where it goes.
2. *Arrive.* The target gets all entries, sealed for it, with their parts and `RunMoved`. From here on it is driven there.
3. *Confirm.* What arrived is read back, and compared with what was sent.
4. *Empty.* At the source `RunLeft` takes the place of all the entries.

Killed between two of them, a journal stands still, or in exactly one place. The same call goes on where it was: `RunLeft`
says that it had begun, and `RunMoved` in the target, which names the last seal at the source, that it has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core.entry import KIND_OF, RunCreated, RunLeft, RunMoved
from surefoot.core.seal import Record, Sealer, from_record
from surefoot.engine.process import bell
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.upkeep import parcels
from surefoot.engine.upkeep.groups import Ties, groups
from surefoot.engine.upkeep.parcels import Parcel
from surefoot.engine.upkeep.verification import PartsSeen, called
from surefoot.errors import Damaged, SchemaMismatch, StoreNotDurable, UsageError
from surefoot.store.contract import Extend, Head, IndexRow, Rewrite, Store, Stored
from surefoot.store.departed import left_of
from surefoot.store.open import address

_TOGETHER: Final = 64
"""Journals that are read, and written, in one go. A group is never divided."""
_TRIES: Final = 5
_MOVED: Final = KIND_OF[RunMoved]
_CREATED: Final = KIND_OF[RunCreated]


class Moved(Struct, frozen=True):
    """A journal that is in the target now, or would be."""

    name: str
    entries: int
    status: str = ""
    """How the run stands; empty: it is no run."""
    began: bool = False
    """Whether the source says already that it moves."""


class Stays(Struct, frozen=True):
    """A journal that stays where it is, and why."""

    name: str
    why: str
    damaged: bool = False


class Gone(Struct, frozen=True):
    """A journal that had moved before: only the word where it went is left."""

    name: str
    url: str


Outcome = Moved | Stays | Gone
Watch = Callable[[int, int], object]
"""Called with how many journals are done, of how many."""
Group = list[Parcel]
"""Journals that move together."""


class Sent(Struct, frozen=True):
    """A journal as the target got it in this call."""

    parcel: Parcel
    records: list[Record]
    """As sealed for the target; empty: an earlier call had sent it."""


class Mover:
    """Moves journals from one store to another."""

    def __init__(self, source: Runtime, target: Runtime, *, by: str = "", note: str = "") -> None:
        if source.store.id == target.store.id:
            raise UsageError(f"{source.store.url} and {target.store.url} are the same store.")
        self._from = source
        self._to = target
        self._by = by
        self._note = note
        self._sound = PartsSeen(source.store)
        self._ties = Ties(source.store)

    def groups(self, wanted: Collection[str] = ()) -> list[list[str]]:
        """The names of the journals to move, those together that move together."""
        return groups(self._from.store, self._ties.new(), wanted)

    def preview(self, found: Sequence[list[str]], watch: Watch | None = None) -> Iterator[Outcome]:
        """What would become of each. Everything is read and verified, and nothing is changed."""
        for batch in _batches(found, watch):
            outcomes, ready = self._read(batch)
            yield from outcomes
            yield from (_moved(parcel) for group in ready for parcel in group)

    def move(self, found: Sequence[list[str]], watch: Watch | None = None) -> Iterator[Outcome]:
        """Move these groups. Each moves whole, or stays. Killed at any moment, the same call goes on."""
        for batch in _batches(found, watch):
            left = batch
            for _ in range(_TRIES):
                outcomes, left = self._move(left)
                yield from outcomes
            yield from (Stays(name, "somebody writes to it all the time") for group in left for name in group)

    def _move(self, batch: Sequence[list[str]]) -> tuple[list[Outcome], list[list[str]]]:
        """What became of each group; and the groups that somebody wrote to meanwhile, to be tried again."""
        if not batch:
            return [], []
        outcomes, ready = self._read(batch)
        left, again = self._leave(ready)
        left, late = self._without_late(left)
        outcomes += late
        sent, behind = self._arrive(left)
        self._confirm(sent)
        self._empty(sent)
        return outcomes + [_moved(one.parcel) for one in sent], again + behind

    # --- calling back ----------------------------------------------------------------------------------

    def call_back(self, found: Sequence[list[str]], watch: Watch | None = None) -> Iterator[Outcome]:
        """Those that an earlier call began to move, and the target has not got, go on at the source.

        The word that they left for the source takes their place in the target first, so no other call can bring them there.
        """
        for batch in _batches(found, watch):
            stored = _read_all(self._from.store, [name for group in batch for name in group])
            for names in batch:
                try:
                    group = [parcels.read(self._from.store, name, stored[name](), self._sound) for name in names]
                except (Damaged, SchemaMismatch) as error:
                    yield from (Stays(name, error.summary, isinstance(error, Damaged)) for name in names)
                else:
                    yield from self._called_back([one for one in group if one.left is not None and not one.is_gone])

    def _called_back(self, group: Group) -> Iterator[Outcome]:
        there = _read_all(self._to.store, [parcel.name for parcel in group])
        found = [(parcel, there[parcel.name]()) for parcel in group]
        why = next(filter(None, (self._keeps(*pair) for pair in found)), "")
        missing = [self._planted(parcel) for parcel, stored in found if stored.head is None]
        if not why and missing and not bell.rewrite(self._to.store, *missing):
            why = "somebody writes to it in the target"
        items = [self._again(parcel) for parcel in group]
        if not why and items and not bell.rewrite(self._from.store, *items):
            why = "somebody moves it now"
        for parcel in group:
            yield Stays(parcel.name, why) if why else _moved(parcel)

    def _keeps(self, parcel: Parcel, there: Stored) -> str:
        """Why the move of a journal cannot be given up; empty: the target has not got it, and will not."""
        left, word = parcel.left, _left_alone(there)
        if left is None or left.store != self._to.store.id.hex():
            return f"{called(parcel.name)}: it moves to another store: {left.url if left is not None else ''}"
        if self._has_arrived(parcel, there):
            return f"{called(parcel.name)}: it has arrived: move it back from there"
        is_planted = word is not None and not word.entries and word.seal == left.seal
        if there.head is None or is_planted or (parcel.state is not None and _is_another(parcel, there)):
            return ""
        return f"{called(parcel.name)}: whether the target has got it cannot be told from what is there"

    def _planted(self, parcel: Parcel) -> Rewrite:
        source, seal = self._from.store, parcel.head.seal.hex()
        word = replace(self._word(parcel), store=source.id.hex(), url=address(source), entries=0, seal=seal)
        record = self._said(parcel, word, behind=None, to=self._to.store)
        return Rewrite(parcel.name, None, 0, [record], parcels.row_of(parcel.name, [record]), archive=False)

    def _again(self, parcel: Parcel) -> Rewrite:
        """The journal without the word that it moves."""
        source, head = self._from.store, parcel.head
        word = RunMoved(source.id.hex(), address(source), head.seq, head.seal.hex(), self._by, self._note)
        record = self._said(parcel, word, behind=head)
        row = parcels.row_of(parcel.name, [*parcel.records, record])
        return Rewrite(parcel.name, parcel.found, head.seq, [record], row, archive=False)

    # --- reading ---------------------------------------------------------------------------------------

    def _read(self, batch: Sequence[list[str]]) -> tuple[list[Outcome], list[Group]]:
        """The groups that may move, verified; and what becomes of the others."""
        stored = _read_all(self._from.store, [name for group in batch for name in group])
        outcomes: list[Outcome] = []
        ready: list[Group] = []
        for names in batch:
            try:
                group = [parcels.read(self._from.store, name, stored[name](), self._sound) for name in names]
            except (Damaged, SchemaMismatch) as error:
                outcomes += [Stays(name, error.summary, isinstance(error, Damaged)) for name in names]
                continue
            outcomes += [Gone(one.name, one.left.url) for one in group if one.is_gone and one.left is not None]
            ready.append([parcel for parcel in group if not parcel.is_gone])
        there = _read_all(self._to.store, [parcel.name for group in ready for parcel in group])
        free: list[Group] = []
        for group in filter(None, ready):
            why = next(filter(None, (self._objection(one, there[one.name]()) for one in group)), "")
            why = why or self._torn(group)
            outcomes += [Stays(one.name, why) for one in group] if why else []
            free += [] if why else [group]
        return outcomes, free

    def _objection(self, parcel: Parcel, there: Stored) -> str:
        """Why a journal that is whole stays where it is; empty: it may move."""
        left = parcel.left
        if left is None:
            why = parcels.objection(self._from, parcel)
        elif left.store != self._to.store.id.hex():
            why = f"it moves to {left.url} already, which is another store: finish that, or give it up with --back"
        elif self._has_arrived(parcel, there):
            return ""
        else:
            why = ""
        if not why and there.head is not None and not self._takes_place(parcel, there):
            why = f"there is another one of that name in {self._to.store.url}"
            why += " (and it stands still here: --back lets it go on)" if left is not None else ""
        return f"{called(parcel.name)}: {why}" if why else ""

    def _torn(self, group: Group) -> str:
        """What belongs to the group, and is not in it: it was begun since the groups were made."""
        names = {parcel.name for parcel in group}
        for parcel in group:
            for other in parcel.tied:
                stored = self._from.store.read(other, 0, 2) if other not in names else Stored([], None)
                left = _left_alone(stored)
                if stored.head is not None and (left is None or left.store != self._to.store.id.hex()):
                    where = (
                        "was begun meanwhile" if left is None else f"has moved to {left.url}, which is another store"
                    )
                    return f"{called(parcel.name)}: {called(other)}, which belongs to it, {where}"
        return ""

    def _without_late(self, left: Sequence[Group]) -> tuple[list[Group], list[Outcome]]:
        """Groups that are fenced, without those that a new run belongs to: its process did not see the fence yet."""
        new = self._ties.new()
        whole: list[Group] = []
        held: list[Outcome] = []
        for group in left:
            names = {parcel.name for parcel in group}
            late = next((run for run, other in new if other in names and run not in names), "")
            if late:
                why = (
                    f"{called(late)}, which belongs to it, was begun meanwhile. It stands still: give the command again"
                )
                held += [Stays(name, why) for name in sorted(names)]
            else:
                whole.append(group)
        return whole, held

    def _takes_place(self, parcel: Parcel, there: Stored) -> bool:
        """Whether the target has no more of it than the word that it once left the target itself, or was called back."""
        left = _left_alone(there)
        if left is None:
            return False
        was_here = f"{self._to.store.id.hex()}:{left.seal}" in parcel.came
        called_back = not left.entries and left.store == self._from.store.id.hex()
        return was_here or (called_back and (parcel.left is None or parcel.left.seal != left.seal))

    def _has_arrived(self, parcel: Parcel, there: Stored) -> bool:
        """Whether the target has got it. It may have been driven since, or have moved on."""
        if parcel.left is None or there.head is None:
            return False
        origin = f"{self._from.store.id.hex()}:{parcel.left.seal}"
        left = _left_alone(there)
        if left is not None and origin in left.came:
            return True
        return any(
            isinstance(entry := from_record(record), RunMoved) and entry.origin == origin
            for record in (*there.records, *self._to.store.quarantined(parcel.name))
            if record.kind == _MOVED
        )

    # --- 1. leave --------------------------------------------------------------------------------------

    def _leave(self, ready: Sequence[Group]) -> tuple[list[Group], list[list[str]]]:
        """Fence them at the source. Those that somebody wrote to meanwhile are to be read again."""
        left: list[Group] = [group for group in ready if all(one.left is not None for one in group)]
        again: list[list[str]] = []
        single = [group for group in ready if len(group) == 1 and group[0].left is None]
        made = [self._leaving(group[0]) for group in single]
        items = [Extend(one.name, one.found, [record], row) for one, record, row in made]
        written = bell.append_each(self._from.store, items)
        for (parcel, record, _), is_written in zip(made, written, strict=True):
            if is_written:
                left.append([_fenced(parcel, record)])
            else:
                again.append([parcel.name])
        for group in ready:
            if len(group) > 1 and any(one.left is None for one in group):
                fenced = self._leave_together(group)
                left += [fenced] if fenced else []
                again += [] if fenced else [[one.name for one in group]]
        return left, again

    def _leave_together(self, group: Group) -> Group:
        """All of them or none; empty: none. Journals that an earlier call has fenced stay as they are."""
        made = [self._leaving(parcel) for parcel in group if parcel.left is None]
        items = [Rewrite(one.name, one.found, one.found.seq, [record], row, archive=False) for one, record, row in made]
        if not bell.rewrite(self._from.store, *items):
            return []
        fenced = {parcel.name: _fenced(parcel, record) for parcel, record, _ in made}
        return [fenced.get(parcel.name, parcel) for parcel in group]

    def _leaving(self, parcel: Parcel) -> tuple[Parcel, Record, IndexRow | None]:
        record = self._said(parcel, self._word(parcel), behind=parcel.head)
        return parcel, record, parcels.row_after(parcel.state, [record])

    def _word(self, parcel: Parcel) -> RunLeft:
        to, head, state = self._to.store, parcel.head, parcel.state
        word = RunLeft(
            to.id.hex(), address(to), head.seq, head.seal.hex(), came=parcel.came, by=self._by, note=self._note
        )  # fmt: skip
        if state is None or state.created is None:
            return word
        created = state.created
        return replace(
            word, status=state.status, workflow=created.workflow, digest=created.digest, created=state.created_at,
            labels=created.labels,
        )  # fmt: skip

    def _said(
        self, parcel: Parcel, entry: RunLeft | RunMoved, *, behind: Head | None, to: Store | None = None
    ) -> Record:
        store = to or self._from.store
        sealer, at = Sealer(store.id, parcel.name), self._from.clock.now()
        if behind is None:
            return sealer.entry(entry, at=at)[0]
        return sealer.entry(entry, at=at, epoch=parcel.epoch, after=(behind.seq, behind.seal))[0]

    # --- 2. arrive -------------------------------------------------------------------------------------

    def _arrive(self, left: Sequence[Group]) -> tuple[list[Sent], list[list[str]]]:
        """Write them into the target. Those whose place was taken meanwhile are to be looked at again."""
        there = _read_all(self._to.store, [parcel.name for group in left for parcel in group])
        sent: list[Sent] = []
        again: list[list[str]] = []
        single: list[tuple[Sent, Extend]] = []
        for group in left:
            found = [(parcel, there[parcel.name]()) for parcel in group]
            coming = [pair for pair in found if not self._has_arrived(*pair)]
            sent += [Sent(parcel, []) for parcel, stored in found if self._has_arrived(parcel, stored)]
            if any(stored.head is not None and not self._takes_place(parcel, stored) for parcel, stored in coming):
                again.append([parcel.name for parcel in group])
            elif len(coming) == 1 and coming[0][1].head is None:
                made, item = self._arriving(*coming[0])
                single.append((made, Extend(item.run, None, item.records, item.row, item.cuts)))
            elif coming:
                pairs = [self._arriving(*pair) for pair in coming]
                if bell.rewrite(self._to.store, *(item for _, item in pairs)):
                    sent += [made for made, _ in pairs]
                else:
                    again.append([parcel.name for parcel in group])
        written = bell.append_each(self._to.store, [item for _, item in single])
        for (made, _), is_written in zip(single, written, strict=True):
            sent += [made] if is_written else []
            again += [] if is_written else [[made.parcel.name]]
        return sent, again

    def _arriving(self, parcel: Parcel, there: Stored) -> tuple[Sent, Rewrite]:
        source, target = self._from.store, self._to.store
        records = parcels.sealed(target.id, parcel.name, parcel.records)
        seal = parcel.head.seal.hex()
        word = RunMoved(source.id.hex(), address(source), parcel.head.seq, seal, self._by, self._note)
        last = Head(records[-1].seq, records[-1].seal) if records else None
        records.append(self._said(parcel, word, behind=last, to=target))
        cuts = parcels.carried(source, parcel.needed)
        row = parcels.row_of(parcel.name, records) if parcel.row is None else replace(parcel.row, seq=len(records))
        item = Rewrite(parcel.name, there.head, 0, records, row, cuts, archive=False)
        return Sent(parcel, records), item

    # --- 3. confirm ------------------------------------------------------------------------------------

    def _confirm(self, sent: Sequence[Sent]) -> None:
        """Read back what the target has got, now or in an earlier call, before anything is deleted at the source."""
        found = _read_all(self._to.store, [one.parcel.name for one in sent])
        sound = PartsSeen(self._to.store)
        for one in sent:
            parcel = one.parcel
            try:
                is_kept = self._is_kept(one, found[parcel.name](), sound)
            except (Damaged, SchemaMismatch) as error:
                raise self._not_kept(parcel.name) from error
            if not is_kept:
                raise self._not_kept(parcel.name)

    def _is_kept(self, one: Sent, stored: Stored, sound: PartsSeen) -> bool:
        parcel = one.parcel
        expected = one.records or parcels.sealed(self._to.store.id, parcel.name, parcel.records)
        if stored.head is not None and stored.records[: len(expected)] == expected:
            return not parcel.needed or sound.first_bad([(0, reference) for reference in parcel.needed]) is None
        # It was rewritten there since, or has moved on: then it is whole by itself, and says where it came from.
        parcels.read(self._to.store, parcel.name, stored, sound)
        return self._has_arrived(parcel, stored)

    def _not_kept(self, what: str) -> StoreNotDurable:
        return StoreNotDurable(
            f"{called(what)}: {self._to.store.url} does not give back what was written to it. Nothing was deleted in "
            f"{self._from.store.url}."
        )

    # --- 4. empty --------------------------------------------------------------------------------------

    def _empty(self, sent: Sequence[Sent]) -> None:
        """The word where it went takes the place of the journal. If somebody else did that first, that is as good."""
        items = [self._emptied(one.parcel) for one in sent]
        if items and not bell.rewrite(self._from.store, *items):
            for item in items:
                bell.rewrite(self._from.store, item)

    def _emptied(self, parcel: Parcel) -> Rewrite:
        word = parcel.left
        if word is None:
            raise AssertionError(parcel.name)
        record = self._said(parcel, word, behind=None)
        return Rewrite(parcel.name, parcel.found, 0, [record], parcels.row_of(parcel.name, [record]), archive=False)


def _fenced(parcel: Parcel, record: Record) -> Parcel:
    """The parcel after the word that it leaves was written."""
    return replace(parcel, found=Head(record.seq, record.seal), left=left_of([record]))


def _moved(parcel: Parcel) -> Moved:
    return Moved(parcel.name, parcel.head.seq, parcel.status, parcel.left is not None)


def _is_another(parcel: Parcel, there: Stored) -> bool:
    """Whether a journal of the same name is of another run: it was begun otherwise."""
    first = there.records[0] if there.records else None
    return first is not None and first.kind == _CREATED and first.body != parcel.records[0].body


def _left_alone(stored: Stored) -> RunLeft | None:
    """What is left of a journal that has moved, if nothing else is."""
    if len(stored.records) != 1:
        return None
    entry = from_record(stored.records[0])
    return entry if isinstance(entry, RunLeft) else None


def _batches(found: Sequence[list[str]], watch: Watch | None) -> Iterator[list[list[str]]]:
    """Groups, as many together as are read in one go."""
    of, done = sum(map(len, found)), 0
    batch: list[list[str]] = []
    for group in found:
        batch.append(group)
        if sum(map(len, batch)) >= _TOGETHER:
            yield batch
            done += sum(map(len, batch))
            batch = []
            if watch is not None:
                watch(done, of)
    if batch:
        yield batch
    if watch is not None:
        watch(of, of)


def _read_all(store: Store, names: Sequence[str]) -> dict[str, Callable[[], Stored]]:
    """What is stored of each, to be asked for one by one: if one cannot be read, the others can."""
    try:
        found = store.read_all(names) if names else []
    except Damaged:
        return {name: _reading(store, name) for name in names}
    return {name: _known(stored) for name, stored in zip(names, found, strict=True)}


def _known(stored: Stored) -> Callable[[], Stored]:
    return lambda: stored


def _reading(store: Store, name: str) -> Callable[[], Stored]:
    return lambda: store.read(name)
