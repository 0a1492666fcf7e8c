"""Accepting a store that is older than it once was: a person's decision, recorded, with its cost named.

The lost records are unknown: the store had acknowledged them, and does not have them. So every run that had not ended
falls back to its present end, with an unknown number of entries lost: from there on each effect that has no record is
in doubt. Runs that were created after the older state are unknown; they cannot be listed, and they would start afresh.
All of that is one transaction, so that a crash leaves the store either refused as before or accepted whole.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from surefoot.core.entry import FellBack, StoreAdopted
from surefoot.core.seal import GENESIS, Sealer
from surefoot.core.state import ENDED
from surefoot.engine.drive import fallback
from surefoot.engine.process import bell, config, journal
from surefoot.engine.process.clock import Clock
from surefoot.errors import JournalCorrupt, StoreUnavailable
from surefoot.store.contract import RESERVED, Head, Journals, Rewrite, Store
from surefoot.store.liveness import vouched
from surefoot.store.rules import is_run

AUDIT = RESERVED + "store"
"""The journal of operations on the store as a whole."""


class Adoption(Struct, frozen=True):
    """What accepting the store as it is would mean."""

    expected: int
    """The last record that the store is known to have reached; 0: unknown."""
    found: int
    unfinished: list[str]
    hopeless: list[str]
    """Runs with no valid entry: they stay refused."""


def look(store: Store) -> Adoption:
    return _prepared(store, "", "", None)[0]


def adopt(store: Store, clock: Clock, *, reason: str, by: str) -> Adoption:
    """Accept the store as it is. `store` was opened with `open_regressed`."""
    _refuse_if_in_use(store)
    adoption, items = _prepared(store, reason, by, clock)
    if not bell.rewrite(store, *items, beyond=max(adoption.expected, adoption.found, 1)):
        raise JournalCorrupt(f"{store.url}: it changed while it was looked at. Nothing was done; try again.")
    config.loud(
        f"store {store.url}: an older state was adopted by {by}: {reason}. {len(adoption.unfinished)} unfinished runs "
        "fell back to it, with every effect that has no record in doubt.",
        kind="adopted",
    )
    return adoption


def _refuse_if_in_use(store: Store) -> None:
    """A living claimant would write on, from its state in memory."""
    for name in filter(is_run, store.names()):
        with suppress(JournalCorrupt):
            holder = fallback.survey(store, name).state.claimant
            if holder is not None and store.alive(holder.worker):
                raise StoreUnavailable(
                    f"{store.url}: run {name} is driven by process {holder.pid} on host {holder.host}, "
                    f"{vouched(store, holder.worker)}. "
                    "End every process that uses the store, then adopt it."
                )


def _prepared(store: Store, reason: str, by: str, clock: Clock | None) -> tuple[Adoption, list[Rewrite]]:
    at = 0 if clock is None else clock.now()
    items: list[Rewrite] = []
    hopeless: list[str] = []
    for name in filter(is_run, store.names()):
        try:
            found = fallback.survey(store, name)
        except JournalCorrupt:
            hopeless.append(name)
            continue
        if found.damage is not None or found.state.status not in ENDED:
            items.append(_fallen_back(store, found, at, reason, by))
    runs = [item.run for item in items]
    expected, reached = store.expected or 0, store.changes()
    items.append(_audited(store, StoreAdopted(by, reason, expected, reached, tuple(runs)), at))
    return Adoption(expected, reached, runs, hopeless), items


def _fallen_back(store: Journals, found: fallback.Survey, at: int, reason: str, by: str) -> Rewrite:
    keep = found.state.seq
    behind = len(found.records) - keep
    in_doubt = found.evidence.open
    why = "an older state of the store was adopted"
    entry = FellBack(keep, behind, fallback.UNKNOWN, why, fallback.UNKNOWN, in_doubt, by, reason)
    after = (keep, found.records[keep - 1].seal)
    record, _ = Sealer(store.id, found.state.run).entry(entry, at=at, epoch=found.state.epoch, after=after)
    found.state.fold(record)
    return Rewrite(found.state.run, found.head, keep, [record], journal.index_row(found.state))


def _audited(store: Journals, entry: StoreAdopted, at: int) -> Rewrite:
    head = store.read(AUDIT).head
    before = head or Head(0, GENESIS)
    record, _ = Sealer(store.id, AUDIT).entry(entry, at=at, after=(before.seq, before.seal))
    return Rewrite(AUDIT, head, before.seq, [record])
