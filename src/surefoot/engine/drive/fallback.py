"""Stepping back from damage: a run goes on from its longest valid prefix, loudly, and nothing is thrown away.

Everything after the first flaw is set aside whole, readable or not. No state is merged from it: the run is its
prefix. But effects that were recorded there have happened. An intact record proves the outcome of its own call
(`evidence.py`); an effect whose record may be among unreadable ones is in doubt (`lost.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core.audit import Audit
from surefoot.core.cure import Advice, command
from surefoot.core.entry import (
    BY_PARTS,
    KIND_OF,
    FellBack,
    Published,
    RunAdopted,
    RunContinued,
    RunCreated,
    RunLeft,
    RunPruned,
)
from surefoot.core.evidence import Evidence, fallbacks_before, weigh
from surefoot.core.seal import GENESIS, Record, Sealer, from_record
from surefoot.core.state import ENDED, FAILED, STOPPED, RunState
from surefoot.engine.process import bell, config, journal
from surefoot.engine.process.clock import Clock
from surefoot.engine.process.observer import observers
from surefoot.engine.process.runtime import driven_here
from surefoot.errors import JournalCorrupt, NotFound, StoreUnavailable, UsageError
from surefoot.store.contract import Extend, Head, IndexRow, Journals, Readable, Rewrite, Store
from surefoot.store.liveness import is_ours, vouched
from surefoot.store.open import backend_of, open_store
from surefoot.store.rules import is_run

UNKNOWN = -1


class Damage(Struct, frozen=True):
    """A run whose journal is damaged, and what going on with it would mean."""

    run: str
    entry: FellBack
    """The entry that going on would record."""
    proven: int
    """How many of the effects that were recorded there have an intact record that proves their outcome."""

    @property
    def _effects(self) -> str:
        return ", ".join(self.entry.in_doubt) or "no intact entry names one"

    def outlook(self) -> str:
        """What is wrong, and what going on would mean."""
        entry = self.entry
        lost = "an unknown number of" if entry.lost < 0 else str(entry.lost)
        return (
            f"run {self.run}: entry {entry.after + 1} is damaged ({entry.why}). Going on after entry {entry.after} sets "
            f"{entry.quarantined} entries aside; {lost} entries are lost. Effects that were recorded there are in doubt: "
            f"{self._effects}; {self.proven} are proven by intact entries."
        )

    def summary(self) -> str:
        entry = self.entry
        of = entry.after + entry.lost if entry.lost > 0 else "?"
        aside = "1 entry" if entry.quarantined == 1 else f"{entry.quarantined} entries"
        return (
            f"run {self.run}: entry {entry.after + 1} of {of} is damaged ({entry.why}); quarantined "
            f"{aside}; fell back: resuming after entry {entry.after}; effects that were recorded beyond it are in doubt: "
            f"{self._effects}" + (f"; proven by intact entries: {self.proven}" if self.proven else "")
        )


class Survey(Struct, frozen=True):
    """A run as it is stored, sound or not: what is valid of it, and what the rest proves."""

    records: list[Record]
    """All records."""
    head: Head | None
    evidence: Evidence
    damage: Damage | None
    state: RunState
    """The state of the valid part."""


def diagnose(store: Store, run: str) -> Damage | None:
    """What is wrong with a run and its values; None: nothing. Changes nothing."""
    return examined(store, run).damage


def examined(store: Store, run: str) -> Survey:
    """As `survey`, and with a look at every value that replay needs."""
    found = survey(store, run)
    lost = _first_lost_value(store, found.records[: found.state.seq])
    return found if lost is None else survey(store, run, lost - 1)


def _first_lost_value(store: Readable, records: list[Record]) -> int | None:
    """The first entry with an unreadable value that replay needs. Arguments of calls are not needed."""
    for record in records:
        entry = from_record(record)
        if isinstance(entry, Published):
            continue  # for people, not for replay
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
    store: Store, clock: Clock, run: str, *, seen: Damage | None = None, by: str = "", note: str = ""
) -> Damage | None:
    """Set aside what is damaged, and all that follows. None: there is nothing to do, or no longer.

    `seen`: the damage that a person was shown and agreed to; if it differs by now, nothing is done.
    """
    while True:
        found = examined(store, run)
        damage = found.damage
        if damage is None:
            return None
        if seen is not None and damage.entry.after != seen.entry.after:
            raise UsageError(f"run {run} has changed since it was looked at. Nothing was done; look again.")
        _refuse_if_driven(store, found)
        records = _sealed(store, clock, found, replace(damage.entry, by=by, note=note))
        for record in records:
            found.state.fold(record)
        row = journal.index_row(found.state)
        if bell.rewrite(store, Rewrite(run, found.head, damage.entry.after, records, row)):
            observers.run_fell_back(run, damage.summary())
            config.loud(damage.summary(), run=run, kind="fallback")
            return damage


def _sealed(store: Journals, clock: Clock, found: Survey, entry: FellBack) -> list[Record]:
    """The entry, and after it the messages of others to the run that were acknowledged to them."""
    state, sealer, at = found.state, Sealer(store.id, found.state.run), clock.now()
    first, _ = sealer.entry(entry, at=at, epoch=state.epoch, after=(entry.after, found.records[entry.after - 1].seal))
    records = [first]
    for sent in found.evidence.messages if state.status not in ENDED else ():
        seq, seal = records[-1].seq, records[-1].seal
        records.append(
            sealer.seal(seq=seq + 1, epoch=state.epoch, at=at, kind=sent.kind, body=sent.body, previous=seal)
        )
    return records


def survey(store: Store, run: str, valid: int | None = None) -> Survey:
    """`valid`: this many entries are known to be sound, with their values."""
    stored = store.read(run)
    if not stored.records and stored.head is None:
        raise NotFound(f"there is no run {run!r} in {store.url}. `{command('runs')}` lists those that are there.")
    sealer = Sealer(store.id, run)
    audit, state = _audited(sealer, stored.records if valid is None else stored.records[:valid])
    keep = state.seq
    kept, behind = stored.records[:keep], stored.records[keep:]
    evidence = weigh(sealer, kept, behind)
    last = Head(kept[-1].seq, kept[-1].seal) if kept else Head(0, GENESIS)
    if not behind and stored.head == last:
        return Survey(stored.records, stored.head, evidence, None, state)
    if any(record.kind == KIND_OF[RunLeft] for record in stored.records):
        raise JournalCorrupt(
            f"run {run}: its journal is damaged, and it moves to another store, or has moved there. It does not go on "
            "here. Nothing was changed.",
            run_id=run,
            cures=(Advice("look", "whether the other store has it: the end of its journal names that store"),),
        )
    if not kept:
        raise JournalCorrupt(
            f"run {run}: no entry of it is valid from the first on, so there is nothing to go on from. "
            "Nothing was changed.",
            run_id=run,
            facts={"entry": 1, "valid": 0},
            cures=(command("repair", run, give_up=True, when="give it up?"),),
        )
    lost, hidden = _lost(stored.head, keep, behind, evidence.whole)
    broken = audit.ends(None if stored.head is None else (stored.head.seq, stored.head.seal))
    why = "" if broken is None else broken.why
    before = fallbacks_before(sealer, kept, [*store.quarantined(run), *behind])
    entry = FellBack(
        keep,
        len(behind),
        _sum([lost, *(entry.lost for entry in before)]) if before is not None else UNKNOWN,
        "a value of it is lost" if keep == valid else why,
        _sum([hidden, *(entry.hidden for entry in before)]) if before is not None else UNKNOWN,
        tuple(dict.fromkeys([*(past.address for past in state.in_doubt()), *evidence.open])),
    )
    return Survey(stored.records, stored.head, evidence, Damage(run, entry, len(evidence.proven)), state)


def _audited(sealer: Sealer, records: list[Record]) -> tuple[Audit, RunState]:
    """The longest prefix that makes sense. A record whose seal holds but that cannot follow is damage as well."""
    state = RunState(sealer.run)
    audit = Audit(sealer, read=state.fold)
    audit.take_all(records)
    if state.seq == audit.valid:
        return audit, state
    state = RunState(sealer.run)  # a record that cannot follow may have left traces in the other state
    for record in records[: audit.valid]:
        state.fold(record)
    return audit, state


def _sum(counts: list[int]) -> int:
    return UNKNOWN if min(counts) < 0 else sum(counts)


def _lost(head: Head | None, keep: int, behind: list[Record], whole: int) -> tuple[int, int]:
    """How many entries are lost, and how many of them cannot be read: counted from the head, if it can be right."""
    newest = max((record.seq for record in behind), default=keep)
    if head is None or head.seq < newest:
        return UNKNOWN, UNKNOWN
    lost = head.seq - keep
    return lost, max(0, lost - whole)


def _refuse_if_driven(store: Store, found: Survey) -> None:
    """A living claimant writes on, from its state in memory: it has to end first."""
    if driven_here(store, found.state.run):
        raise JournalCorrupt(
            f"run {found.state.run}: its journal is damaged, and another thread of this process drives it. "
            "Nothing was changed.",
            run_id=found.state.run,
        )
    holders = [found.state.claimant, *found.evidence.claimants]
    for holder in holders:
        if isinstance(holder, RunAdopted) and not is_ours(holder.worker) and store.alive(holder.worker):
            raise JournalCorrupt(
                f"run {found.state.run}: its journal is damaged, and may still be driven by a process (pid {holder.pid} "
                f"on host {holder.host}), {vouched(store, holder.worker)}. Nothing was changed.",
                run_id=found.state.run,
                cures=(Advice("then", "end that process, and run it again"),),
            )


def renew_row(store: Journals, run: str) -> None:
    """Write a run's row in the index anew, from its journal."""
    found = journal.recorded(store, run)
    if found is not None:
        state, head = found
        bell.append(store, Extend(run, head, [], journal.index_row(state)))


def renew_rows(store: Store, runs: Iterable[str] | None = None) -> None:
    """The same for these runs, or for all, as far as they can be read: the index is a cache."""
    for run in filter(is_run, store.names()) if runs is None else runs:
        with suppress(JournalCorrupt):
            renew_row(store, run)


def shelve(store: Journals, run: str, workflow: str, reason: str) -> None:
    """A run that cannot be read and may not step back: its row says so, and no worker takes it up again."""
    row = IndexRow(run, workflow, STOPPED, "", {}, 0, 0, reason=reason)
    bell.append(store, Extend(run, store.read(run, limit=1).head, [], row))


def give_up(store: Store, clock: Clock, run: str, *, by: str, note: str = "") -> None:
    """End a run without any valid entry, on record: its id stays taken, and the rest is kept."""
    stored = store.read(run)
    try:
        survey(store, run)
    except JournalCorrupt:
        pass
    else:
        raise UsageError(f"run {run} is not lost: `{command('repair', run)}` lets it go on.")
    entry = RunPruned("", "", FAILED, len(stored.records), clock.now(), clock.now(), "", {}, by, note or "given up")
    record, _ = Sealer(store.id, run).entry(entry, at=clock.now())
    state = RunState(run)
    state.fold(record)
    if not bell.rewrite(store, Rewrite(run, stored.head, 0, [record], journal.index_row(state))):
        raise UsageError(f"run {run} has changed since it was looked at. Nothing was done; look again.")


def step_back(store: Store, clock: Clock, run: str, error: JournalCorrupt) -> Store:
    """Make a run that could not be read readable, or raise the reason why that is impossible.

    Returns the store to go on with: a new handle, if its database had to be built anew.
    """
    # An index that disagrees with its table hides entries, also those written now: this is checked first.
    if error.facts.get("structure") or (store.file and store.flaws()):
        if not store.file:
            raise error
        url = store.url
        store.abandon()
        try:
            config.loud(backend_of(url).rebuild(store.file), kind="rebuilt")
        except StoreUnavailable as why:  # another process has it open
            raise error from why
        store = open_store(url, create=False)
        renew_rows(store)
    fall_back(store, clock, run)  # nothing to do: another process did it, or the run is readable after all
    return store
