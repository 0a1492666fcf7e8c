"""One journal on its way to another store: read and verified whole, and sealed anew for the store that gets it.

The fields of an entry stay as they are, and so does its position: only its seal is made anew, since the store's id is part
of it. What is not exactly what was written does not travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from surefoot.core.audit import Audit
from surefoot.core.entry import Entry, RunLeft, RunMoved
from surefoot.core.history import PastEffect
from surefoot.core.parts import Cut, Part, Reference, fault, reachable
from surefoot.core.seal import GENESIS, Record, Sealer, from_record, references
from surefoot.core.state import RunState
from surefoot.engine.drive import claimant
from surefoot.engine.process import journal
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.upkeep.groups import named
from surefoot.engine.upkeep.verification import PartsSeen, called
from surefoot.errors import CodecMissing, JournalCorrupt, SchemaMismatch
from surefoot.store import threads
from surefoot.store.contract import Head, IndexRow, Life, Store, Stored
from surefoot.store.generation_journal import checkpoint_of, unknown_to
from surefoot.store.liveness import is_ours, vouched
from surefoot.store.rules import is_run

_PARTS_PER_LOOK: Final = 500
_NO_REFERENCE: Final = Reference(0, bytes(32), b"")


class Carried(Cut, frozen=True):
    """Parts as another store has them. They are not made again from their contents."""

    stored: dict[bytes, Part] = {}  # noqa: RUF012 - msgspec copies it

    def part(self, name: bytes) -> Part:
        return self.stored[name]


class Parcel(Struct, frozen=True):
    """A journal as it stands at its source."""

    name: str
    records: list[Record]
    """Those that move."""
    found: Head
    """The head as found: that of the last of them, or of what says that they move."""
    needed: list[Reference]
    """The values that are kept by parts."""
    came: tuple[str, ...]
    """Where it had come from before."""
    state: RunState | None
    """None: it is no run."""
    left: RunLeft | None = None
    """What says that it moves, if somebody has begun that."""
    tied: tuple[str, ...] = ()
    """The journals that it names as its own."""
    status: str = ""
    """How the run stands; empty: it is no run."""
    row: IndexRow | None = None
    """Its row of the list of runs before anything says that it moves. None: it is no run, or an earlier call said it."""

    @property
    def head(self) -> Head:
        """The last entry that moves."""
        return Head(self.records[-1].seq, self.records[-1].seal) if self.records else Head(0, GENESIS)

    @property
    def epoch(self) -> int:
        return self.records[-1].epoch if self.records else 0

    @property
    def is_gone(self) -> bool:
        """Whether nothing but the word where it went is left."""
        return self.left is not None and not self.records


def read(store: Store, name: str, stored: Stored, parts: PartsSeen) -> Parcel:
    """A journal, verified whole with its values. `Damaged` or `SchemaMismatch`, if it is not."""
    state = RunState(name) if is_run(name) else None
    audit = Audit(
        Sealer(store.id, name), read=from_record if state is None else state.fold, damage=(JournalCorrupt, CodecMissing)
    )
    needed: list[tuple[int, Reference]] = []
    came: list[str] = []
    tied: dict[str, None] = {}
    last: Entry | None = None
    for record in stored.records:
        last = audit.take(record)
        if last is None:
            break
        tied.update(dict.fromkeys(named(store, record)))
        if last.large:
            needed += [(record.seq, reference) for reference in references(last)]
        elif isinstance(last, RunMoved):
            came.append(last.origin)
    head = stored.head
    broken = audit.ends(None if head is None else (head.seq, head.seal))
    if broken is not None or head is None:
        raise journal.damaged(name, broken, head) if broken is not None else _nothing(name)
    bad = parts.first_bad(needed) if needed else None
    if bad is not None:
        raise JournalCorrupt(f"{called(name)}: a value of entry {bad[0]} is damaged: {bad[1]}.", run_id=name)
    left = last if isinstance(last, RunLeft) else None
    records = stored.records if left is None else stored.records[:-1]
    status = "" if state is None else state.status if left is None else left.status
    row = None if state is None or left is not None else journal.index_row(state)
    return Parcel(name, records, head, [one for _, one in needed], tuple(came), state, left, tuple(tied), status, row)


def _nothing(name: str) -> JournalCorrupt:
    return JournalCorrupt(f"{called(name)}: nothing of it can be found.", run_id=name)


def sealed(store_id: bytes, name: str, records: Sequence[Record]) -> list[Record]:
    """The same entries for another store."""
    sealer, seal, made = Sealer(store_id, name), GENESIS, []
    for one in records:
        record = sealer.seal(seq=one.seq, epoch=one.epoch, at=one.at, kind=one.kind, body=one.body, previous=seal)
        if (record.schema, record.codec, record.key) != (one.schema, one.codec, one.key):
            raise SchemaMismatch(f"{called(name)}: entry {one.seq} is written in another way than this version writes.")
        seal = record.seal
        made.append(record)
    return made


def row_of(name: str, records: Sequence[Record]) -> IndexRow | None:
    """The row of the list of runs for a journal of these entries. None: it is no run."""
    return row_after(RunState(name) if is_run(name) else None, records)


def row_after(state: RunState | None, records: Sequence[Record]) -> IndexRow | None:
    """The row after these further entries."""
    if state is None:
        return None
    for record in records:
        state.fold(record)
    return journal.index_row(state)


def carried(store: Store, needed: Sequence[Reference]) -> tuple[Carried, ...]:
    """The parts of these values as the store has them."""
    names = sorted(reachable(needed, store.parts)) if needed else []
    found: dict[bytes, Part] = {}
    for at in range(0, len(names), _PARTS_PER_LOOK):
        found.update(store.parts(names[at : at + _PARTS_PER_LOOK]))
    for name in names:
        why = fault(found[name]) if name in found else "is missing"
        if why:
            raise JournalCorrupt(f"part {name.hex()[:16]}… {why}.")
    return as_cut(found)


def as_cut(found: dict[bytes, Part]) -> tuple[Carried, ...]:
    """Whole parts, in the form in which a store takes them."""
    return (Carried(_NO_REFERENCE, dict.fromkeys(found, b""), {}, [], found),) if found else ()


# --- what must not move now ------------------------------------------------------------------------------


def objection(runtime: Runtime, parcel: Parcel) -> str:
    """Why a journal that is whole stays where it is; empty: it may move."""
    if parcel.state is not None:
        return _of_run(runtime, parcel.state)
    store, name = runtime.store, parcel.name
    if name.startswith(threads.PREFIX) and (why := _in_use(store)):
        return why
    adopted = threads.adoption(store)
    if not adopted:
        return ""
    if (checkpoint := checkpoint_of(name)) is not None:
        if unknown_to(parcel.records, adopted):
            return f"the store was adopted since checkpoint {checkpoint} was saved: load it and save it first"
    elif name.startswith(threads.PREFIX) and threads.unknown_to(parcel.records, adopted):
        return "the store was adopted since it was saved: go on with its graph there first"
    return ""


def _in_use(store: Life) -> str:
    """Whether a graph may be executed now: the run of its next task would begin here, behind the move."""
    others = [one for one in store.workers() if one.worker != store.worker and not is_ours(one.worker)]
    if not others:
        return ""
    return (
        f"process {others[0].pid} on host {others[0].host} works in the store, and may execute its graph: end it first"
    )


def _of_run(runtime: Runtime, state: RunState) -> str:
    if claimant.is_driven(runtime, state):
        return f"it is being driven by {claimant.described_living(runtime, state)}"
    for past in state.in_doubt():
        if why := _still_in(runtime, state, past):
            return f"{past.address}: {why}"
    return ""


def _still_in(runtime: Runtime, state: RunState, past: PastEffect) -> str:
    """Why the process that began an effect may still be in it. Another store could not find that out."""
    if runtime.still_running(past.key):
        return "an abandoned attempt of it still runs in this process"
    holder = state.left_in(past)
    for worker in filter(None, {past.runs_in, holder.worker if holder else ""}):
        if is_ours(worker):
            continue
        if runtime.store.alive(worker):
            return f"it was begun by worker {worker[:8]}, {vouched(runtime.store, worker)}"
        if not runtime.store.proven_dead(worker):
            return f"worker {worker[:8]}, which began it, is not proven dead: settle it first"
    return ""
