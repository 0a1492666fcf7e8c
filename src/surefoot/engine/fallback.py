"""Stepping back from damage: a run goes on from its longest valid prefix, loudly, and nothing is thrown away.

What is behind the first flaw is set aside whole, readable or not. No state is merged from it: the run is what its
prefix says. But effects that were recorded there have happened, so until as many calls as entries were lost have
been made again, an effect that is reached is in doubt, unless an intact record proves its outcome (`evidence.py`).
"""

from __future__ import annotations

from msgspec import Struct

from surefoot.core.entry import BY_PARTS, FellBack, RunAdopted, RunContinued, RunCreated
from surefoot.core.evidence import Evidence, weigh
from surefoot.core.seal import GENESIS, Record, Sealer, checked_body, from_record, verify
from surefoot.core.state import RunState
from surefoot.engine import config, journal
from surefoot.engine.clock import Clock
from surefoot.errors import JournalCorrupt, NotFound, StoreUnavailable
from surefoot.store.contract import Head, Rewrite, Store
from surefoot.store.open import open_store

UNKNOWN = -1


class Damage(Struct, frozen=True):
    """A run whose journal is not what was written, and what going on with it would mean."""

    run: str
    keep: int
    """How many entries are valid, from the first on."""
    quarantined: int
    """How many entries are there behind them."""
    lost: int
    """How many entries there were behind them; UNKNOWN: nobody can say."""
    why: str
    in_doubt: tuple[str, ...]
    """Effects that were begun behind them and whose outcome no intact record proves."""
    proven: int
    """How many effects behind them have an intact record that proves their outcome."""

    def outlook(self) -> str:
        """What is wrong, and what going on would mean."""
        lost = "an unknown number of" if self.lost < 0 else str(self.lost)
        effects = ", ".join(self.in_doubt) or "no intact entry names one"
        return (
            f"run {self.run}: entry {self.keep + 1} is damaged ({self.why}). Going on after entry {self.keep} sets "
            f"{self.quarantined} entries aside; {lost} entries are lost. Effects that were recorded there are in doubt: "
            f"{effects}; {self.proven} are proven by intact entries."
        )

    def summary(self) -> str:
        of = self.keep + self.lost if self.lost > 0 else "?"
        effects = ", ".join(self.in_doubt) or "no intact entry names one"
        return (
            f"run {self.run}: entry {self.keep + 1} of {of} is damaged ({self.why}); quarantined "
            f"{self.quarantined} entries; fell back: resuming after entry {self.keep}; effects that were recorded "
            f"beyond it are in doubt: {effects}" + (f"; {self.proven} more are proven" if self.proven else "")
        )


class Survey(Struct, frozen=True):
    """A run as it is stored, sound or not: what is valid of it, and what the rest proves."""

    records: list[Record]
    """All of them."""
    head: Head | None
    evidence: Evidence
    damage: Damage | None
    state: RunState
    """What the valid part says."""


def diagnose(store: Store, run: str) -> Damage | None:
    """What is wrong with a run and its values, without changing anything; None: nothing."""
    found = survey(store, run, None)
    lost = _first_lost_value(store, found.records[: found.state.seq])
    return found.damage if lost is None else survey(store, run, lost - 1).damage


def _first_lost_value(store: Store, records: list[Record]) -> int | None:
    """The first entry of which a value that replay needs cannot be read. Arguments of calls are not needed."""
    for record in records:
        entry = from_record(record)
        needed = BY_PARTS if isinstance(entry, RunCreated | RunContinued) else ("value",)
        for name in entry.large:
            if name in needed:
                try:
                    journal.whole(store, record.run, getattr(entry, name))
                except JournalCorrupt as error:
                    if error.facts.get("structure"):
                        raise
                    return record.seq
    return None


def fall_back(
    store: Store, clock: Clock, run: str, *, valid: int | None = None, by: str = "", note: str = ""
) -> Damage | None:
    """Set aside what is damaged, and all that follows. None: there was nothing to do."""
    while True:
        found = survey(store, run, valid)
        damage = found.damage
        if damage is None:
            return None
        _refuse_if_driven(store, found)
        entry = FellBack(
            damage.keep, damage.quarantined, damage.lost, damage.why, damage.in_doubt, by or "", note
        )  # fmt: skip
        kind, body, _ = checked_body(entry)
        record = Sealer(store.id, run).seal(
            seq=damage.keep + 1,
            epoch=found.state.epoch,
            at=clock.now(),
            kind=kind,
            body=body,
            previous=found.records[damage.keep - 1].seal,
        )
        found.state.fold(record)
        row = journal.index_row(found.state)
        if store.rewrite(Rewrite(run, found.head, damage.keep, [record], row)) is None:
            config.loud(damage.summary(), run=run, kind="fallback")
            return damage
        valid = None if valid is None else min(valid, _end(store, run))


def survey(store: Store, run: str, valid: int | None) -> Survey:
    stored = store.read(run)
    if not stored.records and stored.head is None:
        raise NotFound(f"there is no run {run!r} in {store.url}. `surefoot runs` lists those that are there.")
    sealer = Sealer(store.id, run)
    good = verify(sealer, stored.records)
    keep = good if valid is None else min(good, valid)
    kept, behind = stored.records[:keep], stored.records[keep:]
    state = RunState(run)
    for record in kept:
        state.fold(record)
    evidence = weigh(sealer, kept, behind)
    last = Head(kept[-1].seq, kept[-1].seal) if kept else Head(0, GENESIS)
    if not behind and stored.head == last:
        return Survey(stored.records, stored.head, evidence, None, state)
    if not kept:
        raise JournalCorrupt(
            f"run {run}: no entry of it is valid from the first on, so there is nothing to go on from. "
            "Nothing was changed.",
            run_id=run,
            facts={"entry": 1, "valid": 0},
            cures=journal.damaged_cures(run)[:1],
        )
    damage = Damage(
        run,
        keep,
        len(behind),
        _lost(
            stored.head, keep, behind, evidence.lost if not _hidden(store, run, keep, behind, stored.head) else UNKNOWN
        ),
        _why(keep, good, behind, stored.head),
        evidence.open,
        len(evidence.proven),
    )
    return Survey(stored.records, stored.head, evidence, damage, state)


def _lost(head: Head | None, keep: int, behind: list[Record], before: int) -> int:
    """The head tells how long the journal was, if it can be right.

    `before`: what earlier fallbacks had lost that are now set aside themselves. That is still lost.
    """
    newest = max((record.seq for record in behind), default=keep)
    if head is None or head.seq < newest or before < 0:
        return UNKNOWN
    return head.seq - keep + before


def _hidden(store: Store, run: str, keep: int, behind: list[Record], head: Head | None) -> bool:
    """Whether an earlier fallback may be among what is missing altogether: then nobody knows what it had lost."""
    end = keep + len(behind) if head is None else head.seq
    whole = [record.seq for record in behind] == list(range(keep + 1, end + 1))
    return not whole and bool(store.quarantined(run))


def _why(keep: int, good: int, behind: list[Record], head: Head | None) -> str:
    if keep < good:
        return "a value of it is lost"
    if not behind:
        return f"the journal ends there, but its head says {'nothing' if head is None else head.seq}"
    found = behind[0]
    if found.seq != keep + 1:
        return f"it is missing, the next one found is {found.seq}"
    return f"{len(found.body)} bytes, its seal does not hold"


def _refuse_if_driven(store: Store, found: Survey) -> None:
    """A living claimant writes on, from what it has in memory: it has to end first."""
    holders = [found.state.claimant, *found.evidence.claimants]
    for holder in holders:
        if isinstance(holder, RunAdopted) and holder.worker != store.worker and store.alive(holder.worker):
            raise JournalCorrupt(
                f"run {found.state.run}: its journal is damaged, and a living process (pid {holder.pid} on host "
                f"{holder.host}) may still be driving it. Nothing was changed.",
                run_id=found.state.run,
                cures=(("then", "end that process, and run it again"),),
            )


def _end(store: Store, run: str) -> int:
    return len(store.read(run).records)


def rebuild(path: str, *, accept_incomplete: bool = False) -> str:
    """Have a database whose pages are damaged built anew from all that can be read. What was done, in words."""
    from surefoot.store import salvage

    return salvage.rebuild(path, accept_incomplete=accept_incomplete).summary()


def step_back(store: Store, clock: Clock, run: str, error: JournalCorrupt) -> Store:
    """Do what is needed for a run that could not be read, so that it can be: or raise what stands in the way.

    Answers with the store to go on with: a new handle, if its database had to be built anew.
    """
    if error.facts.get("structure"):
        from surefoot.store.sqlite import SqliteStore

        if not isinstance(store, SqliteStore):
            raise error
        url = store.url
        store.abandon()
        try:
            config.loud(rebuild(store.path), kind="rebuilt")
        except StoreUnavailable as why:  # another process has it open
            raise error from why
        store = open_store(url, create=False)
    valid = error.facts.get("valid")
    damage = fall_back(store, clock, run, valid=valid if isinstance(valid, int) else None)
    if damage is None and not error.facts.get("structure"):
        raise error
    return store
