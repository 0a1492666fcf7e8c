"""Runs folded from a few entries, for tests of what is known of a run without a store."""

from __future__ import annotations

from surefoot.core.entry import Entry, RunAdopted
from surefoot.core.seal import GENESIS, Sealer, to_body
from surefoot.core.state import RunState


def sealed(*entries: tuple[Entry, int] | Entry):
    """Records for these entries; an epoch may be given, RunAdopted raises it by itself."""
    sealer, seal, epoch, records = Sealer(b"s" * 16, "r"), GENESIS, 0, []
    for seq, given in enumerate(entries, 1):
        entry, epoch = given if isinstance(given, tuple) else (given, epoch + isinstance(given, RunAdopted))
        kind, body, _ = to_body(entry)
        record = sealer.seal(seq=seq, epoch=epoch, at=seq, kind=kind, body=body, previous=seal)
        seal = record.seal
        records.append(record)
    return records


def folded(*entries):
    state = RunState("r")
    for record in sealed(*entries):
        state.fold(record)
    return state
