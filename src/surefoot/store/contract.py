"""What every store promises. It speaks records and positions and knows nothing of their meaning.

`append` is compare-and-append: each run's records go behind the head the writer names, all runs of a
batch in one durable transaction; a run whose head is another one is a `Conflict` for that run alone.
What was acknowledged is on disk. `surefoot.testing.conformance` holds every store to this page.

A large value is not in its record but in *parts*, shared by all values that contain them. An append names the
values of its records, cut; the store writes what it does not have whole, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from surefoot.core.parts import Cut, Part
from surefoot.core.seal import Record

RESERVED: Final = "\x1f"
"""The first character of a journal that is no run. No run id may have it, and no list of runs shows it."""


class Head(Struct, frozen=True):
    """Where a run's journal ends, kept apart from the records so that a lost tail is noticed."""

    seq: int
    seal: bytes


class IndexRow(Struct, frozen=True):
    """A line of the run list: a cache of what the journal says, rebuilt, never believed."""

    run: str
    workflow: str
    status: str
    queue: str
    labels: dict[str, str]
    created: int
    """Microseconds since 1970."""
    seq: int
    """The entry after which this was true."""


class Append(Struct, frozen=True):
    """Records for one run, to stand right behind `head` (`None`: the run must not exist yet)."""

    run: str
    head: Head | None
    records: Sequence[Record]
    row: IndexRow | None = None
    """The run's new index row, if its status changed; written in the same transaction."""
    cuts: Sequence[Cut] = ()
    """The values that the records hold by reference."""


class Rewrite(Struct, frozen=True):
    """Records to stand behind position `keep` of a journal, in place of everything that is there now."""

    run: str
    found: Head | None
    """The head as it was found, right or wrong: the condition, as for an append."""
    keep: int
    records: Sequence[Record]
    row: IndexRow | None = None
    cuts: Sequence[Cut] = ()
    archive: bool = True
    """Whether what was there is kept for inspection (quarantined), or deleted."""
    forget: bool = False
    """Whether what earlier rewrites of this journal archived is deleted as well."""


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
    offset: int = 0


class Listed(Struct, frozen=True):
    """One run of a list, newest first. `row` is None where the cached row is missing or damaged."""

    run: str
    row: IndexRow | None


class Store(Protocol):
    """Blocking, thread-safe, small. See the module's first lines for the promises."""

    @property
    def id(self) -> bytes:
        """Sixteen random bytes, made with the store; part of every seal."""

    @property
    def url(self) -> str: ...

    @property
    def worker(self) -> str:
        """The identity under which this process is known to be alive to others."""

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        """One durable transaction; the answer for each run in the order asked."""

    def read(self, run: str, after: int = 0, limit: int | None = None) -> Stored:
        """The records after that position, at most so many, and the head. An unknown run: no records, no head."""

    def changes(self) -> int:
        """A number that differs when anything was appended since, by any process. Cheap."""

    def runs(self, query: RunQuery) -> list[Listed]: ...

    def parts(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        """The parts that are there, as found, unverified."""

    # --- maintenance -------------------------------------------------------------------------------

    def rewrite(self, item: Rewrite) -> Conflict | None:
        """One durable transaction, like an append of one run; positions in the store never go back."""

    def quarantined(self, run: str) -> list[Record]:
        """What rewrites archived of a run, in the order in which it was archived, as far as it can be read."""

    def names(self) -> list[str]:
        """Every journal of which anything is left: runs and others, with or without a head."""

    def scan(self, after: int, limit: int) -> list[tuple[int, Record]]:
        """Records of all journals behind a position of the store, as found, unverified, in the order written."""

    def part_ids(self) -> list[bytes]: ...

    def discard(self, parts: Sequence[bytes], upto: int) -> bool:
        """Delete parts, unless anything was appended behind that position of the store; then False."""

    def alive(self, worker: str) -> bool:
        """Whether that worker's process lives. Certain, not guessed from pids or time."""

    def durability(self) -> dict[str, str]:
        """The settings in force, read back from the backend."""

    def close(self) -> None: ...
