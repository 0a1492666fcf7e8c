"""The promises of every store. A store keeps records at positions, and does not know their meaning.

`append` is compare-and-append: each run's records go after the head that the writer names, all runs of a
batch in one durable transaction. A run whose head is another one is a `Conflict` for that run alone.
Acknowledged records are on disk. `surefoot.testing.conformance` checks every store against this page.

The contract is split by caller, and `Store` is all of it. Functions take the protocol they need. Verbs that follow from
the other verbs are in `derived.Derived`, which a backend inherits.

Which worker may take up a run next is in the index, which is a cache. `reserve` hands out candidates, each to one worker
for a few seconds, so that many workers do not read the same journals. A claim is an append like any other. A wrong
reservation costs one reading, never a second claim.

A large value is not in its record but in *parts*, shared by all values that contain them. An append names the
values of its records, cut into parts; the store writes the parts that are missing or damaged, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from surefoot.core.parts import Cut, Part
from surefoot.core.seal import Record

RESERVED: Final = "\x1f"
"""The first character of the name of a journal that is no run. No run id may have it, and no list of runs shows it."""

NOT_IN_A_CHILD: Final = (
    "Steps and effects belong to the process that drives the run: in a helper process, call plain functions, from inside "
    "a step or an effect. A process that works with runs itself is started before the store is opened here, or as a "
    "program of its own."
)
"""The advice where a store is used in a forked child. Forking is not the fault: in any other helper process too, a
decorated function would be outside the run."""


ANY: Final = "*"


class Head(Struct, frozen=True):
    """Where a run's journal ends, kept apart from the records to detect a lost tail."""

    seq: int
    seal: bytes


class IndexRow(Struct, frozen=True):
    """A row of the run list: a cache of the journal, rebuilt, never trusted."""

    run: str
    workflow: str
    status: str
    queue: str
    labels: dict[str, str]
    created: int
    """Microseconds since 1970."""
    seq: int
    """The entry after which this was true."""
    wake: int | None = None
    """The time from which a worker may take it up, in microseconds since 1970; None: not before an entry is written."""
    worker: str = ""
    """The worker that has claimed it. Once that worker is dead, others may take it up."""
    reason: str = ""
    """The first of its stops, by name."""
    need: str = ""
    """What a person has to do for it, by kind (`core/need.py`); empty: nothing."""
    address: str = ""
    """The call that needs it."""
    brief: str = ""
    """What is needed, in a few words, safe to show, at most 200 characters."""
    until: int | None = None
    """The time until which a person should answer, microseconds since 1970."""
    since: int | None = None
    """From when on it has needed that, microseconds since 1970."""
    marks: tuple[str, ...] = ()
    """Marks that lists show beside it: `fell_back`, `left`, `forked`."""


class Extend(Struct, frozen=True):
    """Records for one run, to be added right after `head` (`None`: the run must not exist yet)."""

    run: str
    head: Head | None
    records: Sequence[Record]
    row: IndexRow | None = None
    """The run's new index row, if its status changed; written in the same transaction."""
    cuts: Sequence[Cut] = ()
    """The values that the records hold by reference."""


class Rewrite(Struct, frozen=True):
    """Records to replace everything after position `keep` of a journal."""

    run: str
    found: Head | None
    """The head as found, right or wrong: the condition, as for an append."""
    keep: int
    records: Sequence[Record]
    row: IndexRow | None = None
    cuts: Sequence[Cut] = ()
    archive: bool = True
    """Whether the old records are kept for inspection (quarantined), with a copy of the first record that took their
    place; or deleted."""
    forget: bool = False
    """Whether records archived by earlier rewrites of this journal are deleted as well."""


class Conflict(Struct, frozen=True):
    """The run's head is not the one the writer expected. Nothing of that run was written."""

    run: str


class Stored(Struct, frozen=True):
    """What a store holds of a run: records as found, unverified, in order of `seq`; and its head."""

    records: list[Record]
    head: Head | None


class RunQuery(Struct, frozen=True):
    status: str | None = None
    workflow: str | None = None
    labels: dict[str, str] = {}
    limit: int = 100
    need: str | None = None
    """Runs that wait for a person, by kind; `ANY`: of any kind."""
    queue: str | None = None
    before: str = ""
    """The last run of the page before this one. Empty: start from the newest."""
    claimed: bool = False
    """Only runs that a worker has claimed, dead or alive."""


class Listed(Struct, frozen=True):
    """One run of a list, newest first. `row` is None where the cached row is missing or damaged."""

    run: str
    row: IndexRow | None


class Limit(Struct, frozen=True):
    """The limits of a queue, over all workers."""

    queue: str
    concurrency: int | None = None
    """How many of its runs may be driven at once."""
    starts: int | None = None
    """How many may be taken up within any `seconds`."""
    seconds: float = 1.0


HELD_SECONDS: Final = 5.0
"""How long a run is reserved for the worker that it was handed out to."""


class Wanted(Struct, frozen=True):
    """The runs that a worker could drive now."""

    worker: str
    workflows: Sequence[str]
    """The workflows whose code it has."""
    limit: int
    now: int
    """Microseconds since 1970; a store with a clock of its own uses that clock."""
    queues: Sequence[str] = ()
    """Empty: all."""
    driven: Sequence[str] = ()
    """Runs this process drives at the moment. Its other claims were abandoned without a record."""
    limits: Sequence[Limit] = ()
    seconds: float = HELD_SECONDS
    """How long the reservations hold."""
    only: Sequence[str] = ()
    """These runs and no others; empty: any. With one run it is the admission to its queue."""
    ready_before: int | None = None
    """Only runs that were ready before that time, microseconds since 1970: runs that no worker takes up. Runs of dead
    workers always count as ready."""


class Reserved(Struct, frozen=True):
    runs: list[str]
    """The runs that have been ready longest come first."""
    next_wake: int | None = None
    """When the next one that this worker could drive becomes ready by itself, if any does."""


class Serving(Struct, frozen=True):
    """A worker's description of itself."""

    workflows: tuple[str, ...] = ()
    """The workflows whose code it has."""
    queues: tuple[str, ...] = ()
    """Empty: all."""
    code: str = ""
    """A digest of the code it runs; empty: unknown."""


class WorkerSeen(Struct, frozen=True):
    """A process that is alive, as far as a store knows."""

    worker: str
    host: str
    pid: int
    since: int
    """When it joined, microseconds since 1970."""
    heard: int | None = None
    """Its last sign of life; None: it has a lock, which proves that it is alive now."""
    serving: Serving | None = None
    """None: it is no worker; it drives runs of its own."""


class Journals(Protocol):
    """Records, by run: for all writers and readers."""

    @property
    def id(self) -> bytes:
        """Sixteen random bytes, made with the store; part of every seal."""

    @property
    def url(self) -> str:
        """The address for people: without a password."""

    def append(self, batch: Sequence[Extend]) -> list[Conflict | None]:
        """One durable transaction; the answer for each run in the order asked."""

    def read(self, run: str, after: int = 0, limit: int | None = None) -> Stored:
        """The records after that position, at most `limit`, and the head. An unknown run: no records, no head."""

    def read_all(self, runs: Sequence[str]) -> list[Stored]:
        """The answers of `read` for each of them, with as few requests as possible; raises what any of them would."""

    def changes(self) -> int:
        """A number that changes with every append, by any process. Cheap."""


class Parts(Protocol):
    """Large values: for code that puts them together."""

    def parts(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        """The parts that exist, as found, unverified."""


class Readable(Journals, Parts, Protocol):
    """Journals with their values: for code that reads runs."""


class Index(Protocol):
    """The list of runs, a cache: for people, and for workers that search for lost rows."""

    def runs(self, query: RunQuery) -> list[Listed]:
        """Runs, newest first. Runs without a row are listed with any filter. Runs with a damaged row are listed without
        a filter, or where a filter still finds them. By index: the cost of a filter is the rows that it finds.
        """

    def lost_rows(self) -> list[str]:
        """Runs whose row of the index is missing or damaged: `reserve` does not find them."""

    def said(self, before: int, limit: int) -> list[tuple[int, Record]]:
        """Entries that say what people did, and what fell back (`core.entry.SAID`), of all journals and before a position
        of the store, newest first, as found, unverified. By index: it costs what it finds.
        """

    def tally(self) -> dict[tuple[str, str], int]:
        """The number of runs by (status, reason), according to the index."""


class Life(Protocol):
    """Which workers are alive: for claims, takeovers, and effects in doubt."""

    @property
    def worker(self) -> str:
        """The identity by which other processes know that this one is alive."""

    def serve(self, serving: Serving | None) -> None:
        """The entry of `workers` for this process from now on. None: it takes up no more runs."""

    def workers(self) -> list[WorkerSeen]:
        """The living processes, the longest known first; this one too, if it has joined."""

    def alive(self, worker: str) -> bool:
        """Whether that worker's process is alive, by its lock; or, with many hosts, whether its lease runs."""

    def alive_until(self, worker: str) -> int | None:
        """Until when that worker counts as alive though it may be dead: the end of its lease, microseconds since 1970.
        None: the answer of `alive` is certain.
        """

    def proven_dead(self, worker: str) -> bool:
        """Whether that worker's process has certainly ended: its lock can be taken. An expired lease proves nothing; a
        store with leases only always returns False.
        """

    def last_heard(self, worker: str) -> int | None:
        """The time of that worker's last sign of life, microseconds since 1970. None: unknown."""

    def holds(self) -> bool:
        """Whether others certainly count this process as alive now. Costs nothing: asked before every effect."""

    def now(self) -> int | None:
        """The store's own clock, microseconds since 1970. None: it has none, and the machine's clock counts."""

    def vitals(self) -> dict[str, float]:
        """Numbers about this handle, for monitoring. With leases: `lease_losses` and `lease_renewals`; with a clock of
        the store's own: `clock_difference_seconds`. Costs nothing and never fails.
        """


class Work(Protocol):
    """Which worker drives which run next: for workers."""

    def reserve(self, wanted: Wanted) -> Reserved:
        """Runs that the worker may take up: due (`wake`), or claimed by a worker that is dead; within the limits of
        their queues; oldest first. No other worker gets them for that many seconds, or until their row is written.
        A hint, not a claim: it need not survive a crash of the store.
        """

    def listen(self, seconds: float) -> None:
        """Return when any run may have become ready, or after that many seconds, or soon after `nudge`."""

    def nudge(self) -> None:
        """End a `listen` in another thread of this process."""


class Upkeep(Protocol):
    """The store as a whole: for fallback, verify, prune, adopt and export."""

    def rewrite(self, item: Rewrite) -> Conflict | None:
        """One durable transaction, like an append of one run; positions in the store never go back."""

    def rewrite_together(self, items: Sequence[Rewrite], *, beyond: int = 0) -> bool:
        """All of them in one transaction, or none: False if a journal is not as it was found. The new records get
        positions after `beyond`: records up to there may have been acknowledged and are lost now.
        """

    def quarantined(self, run: str) -> list[Record]:
        """The records of a run that rewrites archived, in the order of archiving, as far as they can be read."""

    def names(self, prefix: str = "") -> list[str]:
        """Every journal with anything left: runs and others, with or without a head. `prefix`: only those whose names
        begin with it, by index.
        """

    def scan(self, after: int, limit: int) -> list[tuple[int, Record]]:
        """Records of all journals after a position of the store, as found, unverified, in the order written."""

    def part_ids(self) -> list[bytes]: ...

    def scan_parts(self, after: int, limit: int) -> list[tuple[int, Part]]:
        """Parts in the order stored, each with its place, as found, unverified: faster than by name."""

    def discard(self, parts: Sequence[bytes], upto: int) -> bool:
        """Delete parts, unless anything was appended after that position of the store; then False."""

    @property
    def expected(self) -> int | None:
        """The last record that the store is known to have reached; None: unknown."""

    @property
    def file(self) -> str:
        """The file that holds it; empty: it is not in a file."""

    def flaws(self) -> list[str]:
        """What is wrong with the place of the records, as far as that can be found out: damaged pages, tables and
        indexes that disagree. Reads all of it.
        """

    def anchor_flaw(self) -> str:
        """The disagreement between the store and its anchor, as both are now; empty: none."""


class Store(Journals, Parts, Index, Life, Work, Upkeep, Protocol):
    """Blocking, thread-safe. See the module's first lines for the promises."""

    @property
    def usable(self) -> bool:
        """False once closed, given up after a failure, or inherited from a parent process: open it again."""

    def durability(self) -> dict[str, str]:
        """The settings in force, read back from the backend."""

    def close(self) -> None: ...

    def abandon(self) -> None:
        """Close without writing anything: the damage is evidence."""
