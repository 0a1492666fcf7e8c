"""The one writer of a run that is driven, and the one reader of runs.

Nothing is decoded, folded or replayed before its seal, its chain and the run's head were found to
agree. "Unreadable" is never turned into "nothing there".
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Raw

from surefoot.core import values
from surefoot.core.audit import BEGINNING, Audit, Break
from surefoot.core.claim import Exists, Lost, Refusal
from surefoot.core.cure import Command, command
from surefoot.core.entry import (
    FENCES,
    ITEMS_DONE,
    KIND_OF,
    KINDS,
    LETTING_GO,
    MADE_BY_ENGINE,
    VISITORS,
    Entry,
    Kept,
    Progressed,
    RunAdopted,
    RunCreated,
    StepStarted,
    Value,
)
from surefoot.core.evidence import Evidence, weigh
from surefoot.core.history import PastEffect
from surefoot.core.need import TELLING, News, of_news
from surefoot.core.parts import Cut, expand
from surefoot.core.readiness import LEFT_BEHIND, MOVING, Standing, moved
from surefoot.core.seal import GENESIS, Record, Sealer, checked_body, from_record, to_body, verify
from surefoot.core.state import NO_PROGRESS, RunState, status_after
from surefoot.engine.process import bell
from surefoot.engine.process.clock import Clock
from surefoot.engine.process.commit import Committer, Packed, Ticket
from surefoot.engine.process.whereabouts import in_its_store
from surefoot.errors import Fenced, JournalCorrupt, Outdated, SchemaMismatch, StoreUnavailable, ValueRejected
from surefoot.store.contract import Extend, Head, IndexRow, Journals, Readable, Store, Stored
from surefoot.store.departed import moved_away


@in_its_store
def load(store: Journals, run: str, stored: Stored | None = None) -> tuple[RunState, Head] | None:
    """A run as recorded, every record verified. None only if the store does not know the run. `MovedAway`, if it is in
    another store now.

    `stored`: its data, if just read along with other runs.
    """
    found = recorded(store, run, stored)
    if found is not None and found[0].gone is not None:
        raise moved_away(f"run {run}", found[0].gone, found[0].gone_at, store.url, is_done=found[0].seq == 1)
    return found


@in_its_store
def recorded(store: Journals, run: str, stored: Stored | None = None) -> tuple[RunState, Head] | None:
    """The same for lists and for moves: also of a run that is in another store now."""
    if stored is None:
        stored = store.read(run)
    if not stored.records and stored.head is None:
        return None
    _verified(Sealer(store.id, run), stored.records, stored.head, after=None)
    state = RunState(run)
    for record in stored.records:
        state.fold(record)
    last = stored.records[-1]
    return state, Head(last.seq, last.seal)


@in_its_store
def records(store: Journals, run: str) -> list[Record]:
    """All verified records of a run; empty if it is unknown."""
    stored = store.read(run)
    if stored.records or stored.head is not None:
        _verified(Sealer(store.id, run), stored.records, stored.head, after=None)
    return stored.records


@in_its_store
def whole(store: Readable, run: str, value: Value) -> Raw:
    """The bytes of a recorded value, inline or kept by parts."""
    if not isinstance(value, Kept):
        return value
    try:
        return Raw(expand(value.reference, store.parts))
    except JournalCorrupt as error:
        if error.facts.get("structure"):
            raise  # the database is damaged, not this value: the value may be whole when the database is built anew
        raise JournalCorrupt(
            f"run {run}: entry {value.entry} is sound, but a value of it is damaged: {error.summary}",
            run_id=run,
            facts={**error.facts, "entry": value.entry, "valid": value.entry - 1},
            cures=damaged_cures(run),
        ) from error


def digest_today(store: Readable, run: str, args: Value) -> str:
    """The digest of recorded arguments in today's form: an upcaster may have given a class a newer shape.

    Empty if today's classes cannot read them; damage is raised, not treated as other arguments.
    """
    try:
        return values.digest(values.decode(whole(store, run, args)))
    except (SchemaMismatch, ValueRejected):
        return ""


@in_its_store
def evidence(store: Store, run: str) -> Evidence:
    """What records that were set aside still prove about effects of a run."""
    return weigh(Sealer(store.id, run), store.read(run).records, store.quarantined(run))


def damaged_cures(run: str) -> tuple[Command, Command]:
    return command("verify", run, when="look"), command("repair", run, when="go on before it")


def _verified(sealer: Sealer, found: list[Record], head: Head | None, *, after: Head | None) -> None:
    """Raise JournalCorrupt unless the records continue `after` without a break and end at `head`."""
    seq, seal = BEGINNING if after is None else (after.seq, after.seal)
    if verify(sealer, found, seq=seq, seal=seal) == len(found) and head is not None:
        newest = found[-1] if found else after
        if newest is not None and newest.seq == head.seq and newest.seal == head.seal:
            return
    audit = Audit(sealer, after=(seq, seal), read=_ignore)  # Possibly damaged data is not decoded.
    audit.take_all(found)
    broken = audit.ends(None if head is None else (head.seq, head.seal))
    if broken is not None:
        raise damaged(sealer.run, broken, head)


def damaged(run: str, broken: Break, head: Head | None) -> JournalCorrupt:
    return JournalCorrupt(
        f"run {run}: entry {broken.entry} of {head.seq if head else '?'} is damaged: {broken.why}. Nothing was changed.",
        run_id=run,
        facts={"entry": broken.entry, "valid": broken.valid},
        cures=damaged_cures(run),
    )


_LISTED: Final = MOVING | TELLING
"""The entries that may change what the list of runs says. Nearly all entries are others."""


class Journal:
    """Appends for one run in one process. Entries become durable in the order in which they were given."""

    def __init__(self, committer: Committer, clock: Clock, state: RunState, head: Head | None) -> None:
        self.run = state.run
        self.epoch = state.epoch
        self.on_visit: Callable[[Entry], object] = _ignore
        """Called (by the committing thread) for each visitor's entry that is read."""
        self.folding = threading.Lock()
        """Held while entries are folded into the run's state. A reader of state from several entries takes it too."""
        self._committer = committer
        self._clock = clock
        self._sealer = Sealer(committer.store.id, state.run)
        self._state = state
        self.head = head
        """The next entry goes after it."""
        self._lazy: dict[object, tuple[Entry, int]] = {}
        self._lock = threading.Lock()
        self._proposed: Extend | None = None
        self._entries: list[Entry] = []
        """The proposed entries."""
        self._torn = False
        """Interrupted while an entry was folded: the state of the run is incomplete."""
        self._claims = False
        """Whether this process has claimed the run, or is about to. Until then no claimant's entry is its own."""
        self.closed = False
        """Whether nothing more is written through this journal."""

    # -- handing entries over ------------------------------------------------------------------

    def lazily(self, entry: Entry) -> None:
        """Keep for the next append: durable no later than the entries after it."""
        key: object = None
        if type(entry) is StepStarted:
            key = entry.address
        else:
            self._pack(entry, 0)  # Refused here, at its source, not with a later entry.
            if type(entry) is Progressed and entry.address == ITEMS_DONE:
                key = ITEMS_DONE  # Only the newest is written.
        with self._lock:
            self._lazy[key or object()] = entry, self._clock.now()

    def append(self, *entries: Entry) -> None:
        """Blocking: durable on return."""
        ticket = self._committer.commit(lambda: self._ticket(entries), self._lock)
        if ticket.error is not None or ticket.refused is not None:
            raise ticket.trouble()

    def add(self, *entries: Entry, notify: Callable[[], None]) -> Ticket:
        """For tasks: queued, with everything lazy before it; `notify` is called when it is done."""
        with self._lock:
            ticket = self._ticket(entries)
            ticket.notify = notify
            self._committer.add(ticket)
        return ticket

    @property
    def owes(self) -> bool:
        """Whether lazy entries are waiting."""
        return bool(self._lazy)

    def flush(self, older_than: int) -> None:
        """Write all lazy entries, if one of them has waited since before that time."""
        with self._lock:
            if self.closed or not any(at <= older_than for _, at in self._lazy.values()):
                return
        with suppress(Fenced):  # Closed meanwhile: the lazy entries were written with the run's last entry.
            self.append()

    def look(self) -> Refusal | None:
        """Read the entries of visitors. The refusal, if another process has the run."""
        return self.commit(Ticket(self, []))

    def claim(self, adopted: RunAdopted, created: RunCreated | None = None) -> Ticket:
        """A ticket for taking the run over (or for creating it). Only one process can win it."""
        first = [] if created is None else [self._pack(created, self._clock.now())]
        self.epoch += 1
        self._claims = True
        return Ticket(self, [*first, self._pack(adopted, self._clock.now())])

    def commit(self, ticket: Ticket) -> Refusal | None:
        """Blocking. The refusal, if another process has the run."""
        self._committer.commit(lambda: ticket, self._lock)
        if ticket.error is not None:
            raise ticket.error
        return ticket.refused

    def in_doubt(self) -> list[PastEffect]:
        """Effects of this segment whose outcome is unknown, according to the journal."""
        with self.folding:
            return self._state.in_doubt()

    def close(self) -> None:
        """Nothing more is written through this journal: late results of abandoned calls are refused."""
        with self._lock:
            self.closed = True

    def _ticket(self, entries: tuple[Entry, ...]) -> Ticket:
        """Made and queued under one lock, else a lazy entry could be written after one that depends on it."""
        if self.closed:
            raise Fenced(f"run {self.run}: this process no longer drives it; a late outcome was not recorded.")
        now = self._clock.now()
        packed = [self._pack(entry, now) for entry in entries]
        if self._lazy:
            for entry in entries:
                # A step that ends before its start was written needs no entry for the start.
                self._lazy.pop(getattr(entry, "address", None), None)
            packed[:0] = [self._pack(entry, at) for entry, at in self._lazy.values()]
            self._lazy.clear()
        # Nothing may follow an entry that ends the claim, even if another thread is about to write.
        self.closed = bool(entries) and type(entries[-1]) in LETTING_GO
        return Ticket(self, packed)

    def _pack(self, entry: Entry, at: int) -> Packed:
        kind, body, cuts = to_body(entry) if type(entry) in MADE_BY_ENGINE else checked_body(entry)
        return entry, kind, body, at, self.epoch, cuts

    # -- called by the committer, one thread at a time ------------------------------------------

    def propose(self, tickets: list[Ticket]) -> Extend:
        """Seal the tickets' entries, after the head as we know it."""
        if self._torn:
            raise StoreUnavailable(f"run {self.run}: interrupted while it was being recorded. Run it again.")
        head, state = self.head, self._state
        seq, seal = (0, GENESIS) if head is None else (head.seq, head.seal)
        sealed: list[Record] = []
        values: list[Cut] = []
        entries: list[Entry] = []
        status, standing, starts, created = state.status, state.standing, state.starts, None
        to_know = state.to_know
        for ticket in tickets:
            for entry, kind, body, at, epoch, cuts in ticket.entries:
                seq += 1
                record = self._sealer.seal(seq=seq, epoch=epoch, at=at, kind=kind, body=body, previous=seal)
                seal = record.seal
                sealed.append(record)
                entries.append(from_record(record) if cuts else entry)
                values += cuts
                status = status_after(entry, status)
                if type(entry) not in NO_PROGRESS:
                    starts = 0
                if type(entry) in _LISTED:
                    standing = moved(entry, at, standing, starts=starts, answered=state.is_answered) or standing
                    to_know = state.news_after(entry, to_know, seq, at) if type(entry) in TELLING else to_know
                if type(entry) is RunCreated:
                    created = entry, at
        row = None
        if (status, standing, to_know) != (state.status, state.standing, state.to_know):
            row = index_row(state, status, standing, to_know, seq, created)
        self._proposed, self._entries = Extend(self.run, head, sealed, row, values), entries
        return self._proposed

    def accepted(self) -> None:
        """The proposal is on disk, and so becomes part of the run's state."""
        done = self._proposed
        if done is None:
            return
        # Ctrl-C may strike here, in a thread that commits for others too: then no caller goes on with an incomplete
        # state.
        self._torn = True
        with self.folding:
            for entry, record in zip(self._entries, done.records, strict=True):
                self._state.apply(entry, record)
                self.head = Head(record.seq, record.seal)
        self._torn = False

    def catch_up(self, tickets: list[Ticket]) -> Refusal | None:
        """Read the entries of others. Drops from the tickets the entries that are already written. The refusal, if
        another process has the run.

        A record of our own epoch is ours: a commit whose answer was lost.
        """
        store = self._committer.store
        if self.head is None and not _holds_claim(store.read(self.run, limit=2).records, tickets):
            return Exists(f"run {self.run} exists already")
        stored = store.read(self.run, self.head.seq if self.head else 0)
        _verified(self._sealer, stored.records, stored.head, after=self.head)
        for record in stored.records:
            if (lost := self._meet(record, tickets)) is not None:
                return lost
            self._torn = True
            with self.folding:
                entry = self._state.fold(record)
                self.head = Head(record.seq, record.seal)
            self._torn = False
            if type(entry) in VISITORS:
                self.on_visit(entry)
        return None

    def _meet(self, record: Record, tickets: list[Ticket]) -> Lost | None:
        first = next((ticket for ticket in tickets if ticket.entries), None)
        ours = first is not None and (record.kind, record.body) == first.entries[0][1:3]
        kind = KINDS.get(record.kind)
        # Until we have claimed the run, an entry of an older claim means that its claimant is alive and goes on.
        outlived = (record.epoch < self.epoch or not self._claims) and kind not in VISITORS
        if record.epoch > self.epoch or outlived or (kind in FENCES and not ours):
            return Lost(
                f"run {self.run}: another process has taken over (epoch {record.epoch}, ours was {self.epoch}). "
                "Nothing of ours was written after that."
            )
        if ours and first is not None:
            first.entries = first.entries[1:]
        return None


def _ignore(_: object) -> None:
    """Does nothing."""


def _holds_claim(found: list[Record], tickets: list[Ticket]) -> bool:
    """Whether a run that we tried to create exists because we created it."""
    bodies = {record.body for record in found if record.kind == KIND_OF[RunAdopted]}
    return any(packed[2] in bodies for ticket in tickets for packed in ticket.entries)


@in_its_store
def visit(
    store: Journals, clock: Clock, run: str, decide: Callable[[RunState], Entry | None],
    known: tuple[RunState, Head] | None = None, *, seen: Head | None = None,
) -> tuple[RunState, Head] | None:  # fmt: skip
    """Write a visitor's entry into a run, driven or not. Returns the run after that. `known`: the run as just read.
    `seen`: how it was when somebody decided to; `Outdated`, if it has moved on since.

    `decide` gets the run as it is right before the append and may raise, or return None for "no entry". It is called
    again whenever another write came first. None: there is no such run.
    """
    while True:
        found, known = known or load(store, run), None
        if found is None:
            return None
        state, head = found
        if seen is not None:
            require_unmoved(run, head, seen)
        entry = decide(state)
        if entry is None:
            return found
        after = (head.seq, head.seal)
        record, cuts = Sealer(store.id, run).entry(entry, at=clock.now(), epoch=state.epoch, after=after)
        before = state.status, state.standing, state.to_know
        state.fold(record)
        row = index_row(state) if (state.status, state.standing, state.to_know) != before else None
        if bell.append(store, Extend(run, head, [record], row, cuts)):
            return state, Head(record.seq, record.seal)


def suppose(store: Journals, clock: Clock, state: RunState, head: Head, entry: Entry) -> Head:
    """Fold an entry into a run as if it had been written behind that head. Nothing is written. The head there would be."""
    after = (head.seq, head.seal)
    record, _ = Sealer(store.id, state.run).entry(entry, at=clock.now(), epoch=state.epoch, after=after)
    state.apply(entry, record)  # The entry itself: no store has the parts of its values.
    return Head(record.seq, record.seal)


def require_unmoved(run: str, head: Head, seen: Head) -> None:
    """`Outdated`, unless the run is as somebody saw it who decides something about it."""
    if head != seen:
        moved = (
            f"is at entry {head.seq}, and was at entry {seen.seq}" if head.seq != seen.seq else "has another history"
        )
        raise Outdated(
            f"run {run} has changed since you looked: it {moved}. Nothing was recorded. Look again: "
            f"{command('runs show', run)}"
        )


@in_its_store
def create(store: Journals, clock: Clock, run: str, created: RunCreated) -> RunState:
    """Record a run that another process will drive; or find the run that already has the id."""
    record, cuts = Sealer(store.id, run).entry(created, at=clock.now())
    state = RunState(run)
    state.fold(record)
    if not bell.append(store, Extend(run, None, [record], index_row(state), cuts)):
        found = load(store, run)
        if found is None:
            raise JournalCorrupt(f"run {run}: the store has its head, but not its journal", run_id=run)
        state, _ = found
    return state


def index_row(
    state: RunState, status: str | None = None, standing: Standing | None = None,
    to_know: tuple[News, ...] | None = None, seq: int | None = None, creation: tuple[RunCreated, int] | None = None,
) -> IndexRow:  # fmt: skip
    """The index row of a folded run; or its row after entries that are being written."""
    created, created_at = creation or (state.created, state.created_at)
    if created is None:
        raise AssertionError(state.run)
    standing = standing or state.standing
    # What is only to be known is shown where nobody has anything to decide.
    need = standing.need if standing.need.kind else of_news(state.to_know if to_know is None else to_know)
    marks = {
        "fell_back": bool(state.fallbacks),
        "left": standing.reason == LEFT_BEHIND,
        "forked": state.created is not None and bool(state.created.parent),
    }
    return IndexRow(
        state.run, created.workflow, status or state.status, created.queue, created.labels, created_at,
        state.seq if seq is None else seq, standing.wake, standing.worker, standing.reason,
        need.kind, need.address, need.brief, need.until, need.since,
        tuple(mark for mark, is_set in marks.items() if is_set),
    )  # fmt: skip
