"""Time travel: the records of a run up to a call, and a new run that goes on from there.

A fork copies the results of all ended calls that were first recorded before the point. Calls that had not ended, and
the point itself, begin anew. Bodies of records are copied unchanged and sealed for the new run, in one append: a fork
exists completely or not at all, and its parent is only read. A copied effect keeps the parent's key, as a fact; effects
that the fork executes itself have keys of their own, because a key is made from the run's id.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.address import as_recorded
from surefoot.core.cure import command
from surefoot.core.doubt import settling
from surefoot.core.entry import (
    KIND_OF,
    CallsReopened,
    DriftAccepted,
    Entry,
    EventSent,
    EventTaken,
    RunAdopted,
    RunContinued,
    RunCreated,
    RunPruned,
    RunReleased,
    RunRewound,
    WorldSeen,
)
from surefoot.core.history import Past, PastState
from surefoot.core.seal import GENESIS, Record, Sealer, checked_body, from_record
from surefoot.core.state import DRIVEN, RunState
from surefoot.engine.declare.plan import check_id
from surefoot.engine.declare.rehearsal import would_do
from surefoot.engine.operate.handle import RecordedCall, Run, Seen, whoami
from surefoot.engine.process import bell, journal
from surefoot.engine.upkeep import verification
from surefoot.errors import RunConflict, UsageError
from surefoot.store.contract import Extend, Head

_ENDED: Final = (PastState.DONE, PastState.FAILED)
_PART_OF: Final = re.compile(r"(.*#\d+)\.(?:approval|repair\d+)")
_NEAR: Final = 5


# --- looking back ----------------------------------------------------------------------------------


class StateAt(Struct, frozen=True):
    """A run right after a call: everything that was recorded up to then."""

    run_id: str
    address: str
    seq: int
    """The last entry that is included."""
    at: datetime
    segment: int
    status: str
    calls: list[RecordedCall]
    """The calls of that segment, in the order in which they were first recorded."""
    published: dict[str, Any]
    progress: tuple[float, float | None, str] | None
    """Done, total, note."""
    set_aside: bool
    """Whether the run was rewound to before this call later."""

    def call(self, address: str) -> RecordedCall:
        wanted = as_recorded(address)
        found = next((call for call in self.calls if call.address == wanted), None)
        if found is None:
            raise unknown_call(self.run_id, wanted, [call.address for call in self.calls])
        return found

    def value(self, address: str) -> Any:
        """What that call had given, decoded."""
        found = self.call(address)
        if not found.result:
            raise UsageError(f"run {self.run_id}: {found.address} had no result then: {found.error or found.status}.")
        return values.decode(found.result.encode())

    def args(self, address: str) -> Any:
        """The arguments of that call by name, decoded; None where there are none."""
        found = self.call(address)
        return values.decode(found.args.encode()) if found.args else None


class _Seen:
    """The place of a call in the journal."""

    def __init__(self, segment: int, seq: int) -> None:
        self.segment = segment
        self.first = self.last = seq
        self.set_aside = False


def state_at(run: Run, address: str, *, segment: int | None = None) -> StateAt:
    """What was recorded up to and including that call; of several segments the newest that has it is meant."""
    wanted = as_recorded(address)
    records = _records(run)
    seen = _places(records)
    places = [one for (_, name), one in seen.items() if name == wanted and segment in (None, one.segment)]
    if not places:
        raise unknown_call(run.id, wanted, [name for (number, name) in seen if segment in (None, number)])
    place = places[-1]
    then = RunState(run.id)
    for record in records[: place.last]:
        then.fold(record)
    progress = then.progress
    return StateAt(
        run_id=run.id,
        address=wanted,
        seq=place.last,
        at=datetime.fromtimestamp(records[place.last - 1].at / 1e6, UTC),
        segment=then.segment,
        status=then.status,
        calls=[run.recorded(past) for past in then.calls.values() if past.kind != "note"],
        published={name: values.decode(run.whole(raw)) for name, raw in then.published.items()},
        progress=None if progress is None else (progress.done, progress.total, progress.note),
        set_aside=place.set_aside,
    )


def _records(run: Run) -> list[Record]:
    found = run._records()
    if found[0].kind == KIND_OF[RunPruned]:
        raise UsageError(f"run {run.id} was pruned: what it recorded is no longer kept.")
    return found


def _places(records: Iterable[Record]) -> dict[tuple[int, str], _Seen]:
    """Every call that was ever recorded, by segment and address."""
    seen: dict[tuple[int, str], _Seen] = {}
    segment = 1
    for record in records:
        entry = from_record(record)
        if isinstance(entry, RunContinued):
            segment += 1
        elif isinstance(entry, RunRewound):
            for one in seen.values():
                one.set_aside |= one.segment == segment and one.first >= entry.seq
        elif address := getattr(entry, "address", ""):
            place = seen.get((segment, address))
            if place is None or place.set_aside:
                place = seen[segment, address] = _Seen(segment, record.seq)
            place.last = record.seq
    return seen


def unknown_call(run: str, address: str, known: list[str]) -> UsageError:
    near = difflib.get_close_matches(address, known, n=_NEAR, cutoff=0.4) or known[-_NEAR:]
    told = ", ".join(near) or "none"
    return UsageError(
        f"run {run} has no recorded call {address!r}. Near it: {told}. `{command('runs show')}` lists all."
    )


# --- forking ---------------------------------------------------------------------------------------


class Fork(Struct, frozen=True):
    """A run that goes on from a point of another one."""

    run: Run
    parent: str
    at: str
    reused: list[str]
    """Calls whose recorded results come from its parent."""
    would_execute: list[str]
    """Recorded effects of the parent that the fork would execute again, if its code asks for them."""


class Draft(Struct, frozen=True):
    """A fork that is not written yet."""

    at: str
    records: list[Record]
    state: RunState
    reused: list[str]
    would_execute: list[str]


def fork(
    run: Run, new_id: str, *, at: str, by: str | None = None, note: str = "", via: str = "", seen: Seen | None = None
) -> Fork:
    """Make the fork, or find the one that was made of the same point under the same id."""
    store, address = run.runtime.store, as_recorded(at)
    while True:
        found = existing(run, new_id, at=address)
        if found is not None:
            return found
        would_do("fork of run", new_id)
        draft = prepare(run, new_id, at=address, by=by, note=note, via=via, seen=seen)
        written = Extend(new_id, None, draft.records, journal.index_row(draft.state))
        if bell.append(store, written):
            break  # Else another process was first: read what exists.
    _require_whole(run, new_id)
    return Fork(Run(run.runtime, new_id), run.id, address, draft.reused, draft.would_execute)


def prepare(
    run: Run, new_id: str, *, at: str, by: str | None = None, note: str = "", via: str = "", seen: Seen | None = None
) -> Draft:
    """The content of a fork. Nothing is written."""
    check_id(new_id)
    address = as_recorded(at)
    records = _records(run)
    if seen is not None:
        journal.require_unmoved(run.id, Head(records[-1].seq, records[-1].seal), seen.head)
    parent = RunState(run.id)
    for record in records:
        parent.fold(record)
    point = _point(parent, address, records)
    kept = _kept(parent, point)
    taken = _taken_over(records, kept, point.first, parent.segment)
    why = f"forked from {run.id} before {address} by {by or whoami()}"
    why += (f" ({via})" if via else "") + (f": {note}" if note else "")
    sealed, state = _sealed(run, new_id, taken, _created(run.id, records[0], taken, address), why)
    return Draft(address, sealed, state, _reused(state), _executed_again(parent, kept))


def existing(run: Run, new_id: str, *, at: str) -> Fork | None:
    """The fork that was made before; RunConflict if the id is taken by anything else."""
    check_id(new_id)
    store, address = run.runtime.store, as_recorded(at)
    found = journal.load(store, new_id)
    if found is None:
        return None
    created = found[0].created
    if created is None or (created.parent, created.at) != (run.id, address):
        whose = f"forked from {created.parent} before {created.at}" if created and created.parent else "no fork of it"
        raise RunConflict(
            f"run {new_id} in {store.url} exists already, and is {whose}. Choose another id for the fork."
        )
    then = RunState(new_id)
    for record in journal.records(store, new_id):
        if isinstance(then.fold(record), RunReleased):
            break
    reused, parent = _reused(then), journal.load(store, run.id)
    again = [] if parent is None else _executed_again(parent[0], reused)
    return Fork(Run(run.runtime, new_id), run.id, address, reused, again)


def _reused(fork: RunState) -> list[str]:
    return [past.address for past in fork.calls.values() if past.kind != "note"]


def _executed_again(parent: RunState, kept: Collection[str]) -> list[str]:
    effects = [past.address for past in parent.calls.values() if past.kind == "effect"]
    return [address for address in effects if address not in kept and not _PART_OF.fullmatch(address)]


def _point(parent: RunState, address: str, records: list[Record]) -> Past:
    point = parent.calls.get(address)
    if point is not None:
        return point
    earlier = [segment for segment, name in _places(records) if name == address and segment < parent.segment]
    if earlier:
        raise UsageError(
            f"run {parent.run}: {address} belongs to segment {earlier[-1]}, and the run is in segment {parent.segment} "
            f"now. It can be looked at (run.state_at), but a fork begins in the current segment."
        )
    raise unknown_call(parent.run, address, list(parent.calls))


def _kept(parent: RunState, point: Past) -> set[str]:
    """The calls whose results are copied. Refused if one is in doubt: a person has to settle it first."""
    before = {past.address: past for past in parent.calls.values() if past.first < point.first}
    doubtful = [past.address for past in parent.in_doubt() if past.address in before]
    if doubtful:
        happened, did_not = settling(parent.run, doubtful[0], "", "")
        raise UsageError(
            f"run {parent.run} cannot be forked before {point.address}: {', '.join(doubtful)} came before it and is in "
            f"doubt, so nobody knows what the fork should go on with. Wait for it if it is running; else settle it "
            f"first:\n  {happened}\n  {did_not}"
        )
    ended = {address for address, past in before.items() if past.state in _ENDED}
    return {address for address in ended if _belongs(before[address], ended)}


def _belongs(past: Past, kept: set[str]) -> bool:
    """An approval is for one execution. If the fork executes the effect itself, it has to ask again."""
    part_of = _PART_OF.fullmatch(past.address)
    if part_of is None or part_of[1] in kept:
        return True
    is_yes = isinstance(past.value, Raw) and values.decode(past.value) is True  # Never kept by parts.
    return past.kind == "question" and not is_yes


def _taken_over(records: list[Record], kept: set[str], point: int, last_segment: int) -> list[tuple[Record, Entry]]:
    """The records of the parent that a fork consists of."""
    entries = [(record, from_record(record)) for record in records]
    began = [record.seq for record, entry in entries if isinstance(entry, RunContinued)]
    current = began[-1] if last_segment > 1 else 0
    taken = {
        entry.id
        for record, entry in entries
        if isinstance(entry, EventTaken) and (record.seq < current or entry.address in kept)
    }

    def wanted(record: Record, entry: Entry) -> bool:
        if isinstance(entry, RunRewound):
            return False
        if isinstance(entry, EventSent):
            return record.seq < point or entry.id in taken
        address = getattr(entry, "address", "")
        if not address:
            return isinstance(entry, WorldSeen | DriftAccepted) and record.seq < point
        return record.seq < current or address in kept

    chosen = [(record, entry) for record, entry in entries if wanted(record, entry)]
    upto = max([point, *(record.seq + 1 for record, _ in chosen)])
    # Claims, rewinds and retries decide the meaning of the records between them: all stay, up to the last record.
    frame = (RunAdopted, RunRewound, CallsReopened, RunContinued)
    return sorted(
        [*chosen, *((record, entry) for record, entry in entries if isinstance(entry, frame) and record.seq < upto)],
        key=lambda pair: pair[0].seq,
    )


def _created(parent: str, first: Record, taken: list[tuple[Record, Entry]], address: str) -> bytes:
    """The first entry of the fork. Its arguments are the parent's, even if they are kept by parts."""
    last = taken[-1][0] if taken else first
    created = msgspec.json.decode(first.body, type=RunCreated)
    named = msgspec.structs.replace(created, parent=parent, parent_seal=last.seal.hex(), at=address, due=None)
    return msgspec.json.encode(named)


def _sealed(
    run: Run, new_id: str, taken: list[tuple[Record, Entry]], created: bytes, why: str
) -> tuple[list[Record], RunState]:
    """The records of the fork, folded once: unreadable records are not written."""
    sealer, state = Sealer(run.runtime.store.id, new_id), RunState(new_id)
    sealed: list[Record] = []

    def add(kind: int, body: bytes, epoch: int, at: int) -> None:
        previous = sealed[-1].seal if sealed else GENESIS
        record = sealer.seal(seq=len(sealed) + 1, epoch=epoch, at=at, kind=kind, body=body, previous=previous)
        state.fold(record)
        sealed.append(record)

    now = run.runtime.clock.now()
    add(KIND_OF[RunCreated], created, 0, now)
    for record, entry in taken:
        body = record.body
        if isinstance(entry, RunRewound):
            # The entry names a position of the parent. In the fork, it is the position with the same records before it.
            position = sum(earlier.seq < entry.seq for earlier, _ in taken) + 2
            body = msgspec.json.encode(msgspec.structs.replace(entry, seq=position))
        add(record.kind, body, record.epoch, record.at)
    if state.status in DRIVEN:
        kind, body, _ = checked_body(RunReleased(why))
        add(kind, body, state.epoch, now)
    return sealed, state


def _require_whole(run: Run, new_id: str) -> None:
    """Parts of large values are shared. If the parent was pruned meanwhile, they may be gone."""
    first = run.runtime.store.read(run.id, limit=1).records
    if not first or first[0].kind == KIND_OF[RunPruned]:
        verification.verify_run(run.runtime.store, new_id)
