"""An exported journal goes into a store: under its own seals into the store that it came from, else sealed anew.

A file does not say what became of its source since. What had ended when it was exported is taken as it is. What had not
may have gone on, or may still: it is refused, unless a person says that it is driven nowhere else. Then it goes on from its
last entry, and every effect without a record is in doubt, as after a fallback.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from surefoot.core.entry import FellBack, RunLeft, RunMoved, RunPruned
from surefoot.core.seal import Record, Sealer, from_record
from surefoot.core.state import ENDED, RunState
from surefoot.engine.process import bell
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.upkeep import parcels
from surefoot.engine.upkeep.exports import Contents, read_file
from surefoot.engine.upkeep.verification import called, verify_run
from surefoot.errors import JournalCorrupt, UsageError
from surefoot.store.contract import Rewrite, Stored
from surefoot.store.departed import came
from surefoot.store.rules import is_run

_UNKNOWN: Final = -1


class Imported(Struct, frozen=True):
    """A journal that is in the store now, or would be."""

    run: str
    entries: int
    status: str
    """How the run stands in the file; empty: it is no run."""
    is_back: bool
    """Whether it takes the place of the tombstone that it left in this very store."""


class Import(Struct, frozen=True):
    """A file, checked, and where it would go."""

    found: Imported
    name: str
    contents: Contents
    there: Stored


def look(runtime: Runtime, path: str, *, go_on: bool = False) -> Import:
    """Check a file, and whether the store has a place for it. Nothing is changed."""
    return admitted(runtime, read_file(path), path, go_on=go_on)


def admitted(runtime: Runtime, contents: Contents, where: str, *, go_on: bool = False) -> Import:
    name, records = contents.exported.run, contents.records
    if not contents.exported.whole or not records:
        raise UsageError(f"{where} is of a damaged journal. It is evidence, and nothing to go on from.")
    if isinstance(from_record(records[-1]), RunLeft):
        raise UsageError(f"{where}: {called(name)} had moved to another store when it was exported. Export it there.")
    state = None
    if is_run(name):
        state = RunState(name)
        for record in records:
            state.fold(record)
    there = runtime.store.read(name)
    is_back = _is_its_tombstone(there, records[-1])
    if there.head is not None and not is_back:
        raise UsageError(f"{called(name)}: there is one of that name in {runtime.store.url}. Nothing was changed.")
    if not go_on and not (state is not None and state.status in ENDED):
        raise UsageError(
            f"{where}: {called(name)} had not ended when it was exported, and may have gone on since. If it is driven "
            "nowhere else, and never will be, say so with --go-on: then every effect that has no record is in doubt."
        )
    status = "" if state is None else state.status
    return Import(Imported(name, len(records), status, is_back), name, contents, there)


def carry_out(runtime: Runtime, one: Import, where: str, *, by: str = "", note: str = "") -> Imported:
    """Write it into the store, and read it back whole."""
    store, name, at = runtime.store, one.name, runtime.clock.now()
    source, last = bytes.fromhex(one.contents.exported.store), one.contents.records[-1]
    records = parcels.sealed(store.id, name, one.contents.records)
    sealer = Sealer(store.id, name)
    if source != store.id:
        word = RunMoved(source.hex(), where, last.seq, last.seal.hex(), by, note)
        records.append(sealer.entry(word, at=at, epoch=last.epoch, after=_end(records))[0])
    if one.found.status and one.found.status not in ENDED:
        why = "taken from a file: what came after it is not known"
        entry = FellBack(records[-1].seq, 0, _UNKNOWN, why, _UNKNOWN, (), by, note)
        records.append(sealer.entry(entry, at=at, epoch=last.epoch, after=_end(records))[0])
    cuts = parcels.as_cut(one.contents.parts)
    row = parcels.row_of(name, records)
    item = Rewrite(name, one.there.head, 0, records, row, cuts, archive=False)
    if not bell.rewrite(store, item):
        raise UsageError(f"{called(name)}: somebody has written to it meanwhile. Nothing was changed.")
    if verify_run(store, name) < len(records):
        raise JournalCorrupt(f"{called(name)}: not all of it came back from {store.url}.", run_id=name)
    return one.found


def _end(records: list[Record]) -> tuple[int, bytes]:
    return records[-1].seq, records[-1].seal


def _is_its_tombstone(there: Stored, last: Record) -> bool:
    """Whether all that the store has of it is the tombstone that names its last entry, and how that came here."""
    if not there.records or not all(map(came, there.records[1:])):
        return False
    entry = from_record(there.records[0])
    return isinstance(entry, RunPruned) and bool(entry.seal) and entry.seal == last.seal.hex()
