"""Retention: runs that ended long ago are replaced by a sealed tombstone, and parts that no run needs are deleted.

A pruned run never counts as "never existed": its tombstone keeps the id, how it ended and the digest of its arguments,
so starting it again finds it. Each run is one transaction. Parts are deleted in another one, only after everything that
is left was found whole, and only if nothing was appended meanwhile. Killed at any moment, the store still verifies; at
worst some parts stay until the next sweep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core.entry import RunPruned
from surefoot.core.seal import Sealer
from surefoot.core.state import ENDED, RunState
from surefoot.core.timer import MICROS
from surefoot.engine.process import bell, journal
from surefoot.engine.process.clock import Clock
from surefoot.engine.upkeep.verification import Flaw, Verification, Watch, aside
from surefoot.errors import Damaged, MovedAway, SchemaMismatch
from surefoot.store.contract import Head, Index, Rewrite, RunQuery, Store, Upkeep

_PAGE: Final = 1000
_TRIES: Final = 20


class Candidate(Struct, frozen=True):
    """A run that ended long enough ago, as it was when it was checked."""

    run: str
    head: Head
    tombstone: RunPruned


class Refusal(Struct, frozen=True):
    """A run that is not pruned, and why."""

    run: str
    why: str
    damaged: bool = False
    """Whether what was written elsewhere of it is damaged."""


class Swept(Struct, frozen=True):
    """The result for the parts that no run needs."""

    deleted: int
    why: str = ""
    """Why none were deleted; empty: all of them were."""
    flaws: list[Flaw] = []


def candidates(
    store: Store, clock: Clock, *, older_than_seconds: float, statuses: Collection[str] = ENDED
) -> Iterator[Candidate | Refusal]:
    """The runs that may be pruned, verified one by one. Nothing is changed."""
    before = clock.now() - round(older_than_seconds * MICROS)
    for run in _listed(store, statuses):
        try:
            found = journal.load(store, run)
        except (Damaged, SchemaMismatch) as error:
            yield Refusal(run, error.summary)
            continue
        except MovedAway:
            continue  # what is left of it says where it is
        if found is None:
            continue
        state, head = found
        if state.pruned is None and state.status in statuses and state.newest_at < before:
            yield _candidate(state, head)


def bury(
    store: Store, clock: Clock, found: Candidate, *, by: str = "", note: str = "", archive: str = "", sha256: str = ""
) -> Refusal | None:
    """Replace a run's journal by the tombstone. Refused if the run has changed since it was checked.

    `archive`, `sha256`: the object that was made of the run, and found whole.
    """
    stone = replace(found.tombstone, by=by, note=note, archive=archive, sha256=sha256)
    record, cuts = Sealer(store.id, found.run).entry(stone, at=clock.now())
    left = RunState(found.run)
    left.fold(record)
    item = Rewrite(found.run, found.head, 0, [record], journal.index_row(left), cuts, archive=False, forget=True)
    return None if bell.rewrite(store, item) else Refusal(found.run, "somebody has written to it meanwhile")


def sweep(store: Store, *, watch: Watch | None = None) -> Swept:
    """Delete the parts that nothing needs. If anything is damaged, nothing is deleted."""
    upto = store.changes()
    survey = Verification(store)
    verdict = survey.verdict(watch=watch)
    if verdict.flaws:
        return Swept(0, "something in the store is damaged, and what it needs is not known", verdict.flaws)
    for _ in range(_TRIES):
        upto, written = _written_since(store, upto)
        flaws = survey.again(written)
        if flaws:
            return Swept(0, "something in the store was damaged meanwhile", flaws)
        # Last, since a fallback moves entries there: each was read in its journal before, or is read here now.
        dead = set(store.part_ids()) - survey.needed - aside(store, store.names())
        if not dead or store.discard(sorted(dead), upto):
            return Swept(len(dead))
    return Swept(0, "the store is too busy now; they stay until the next time")


def _listed(store: Index, statuses: Collection[str]) -> list[str]:
    """Runs that may have ended with these statuses. The list is a cache and may lack one; the journals decide."""
    found: list[str] = []
    before = ""
    while page := store.runs(RunQuery(limit=_PAGE, before=before)):
        found += [listed.run for listed in page if listed.row is None or listed.row.status in statuses]
        before = page[-1].run
    return found


def _candidate(state: RunState, head: Head) -> Candidate:
    row = journal.index_row(state)
    digest = state.created.digest if state.created is not None else state.digest
    seal = head.seal.hex()
    left = RunPruned(row.workflow, digest, row.status, state.seq, row.created, state.newest_at, seal, row.labels)
    return Candidate(row.run, head, left)


def _written_since(store: Upkeep, upto: int) -> tuple[int, set[str]]:
    """The journals that were written to after a position of the store, and the position that they end at."""
    names: set[str] = set()
    while batch := store.scan(upto, _PAGE):
        names |= {record.run for _, record in batch}
        upto = batch[-1][0]
    return upto, names
