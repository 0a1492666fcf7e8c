"""Verbs of a store that follow from its other verbs. A backend inherits them, and overrides some to be faster.

The defaults are those of a store without a clock, a lease or a file of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from surefoot.core.parts import Part
from surefoot.store.contract import Conflict, Rewrite, RunQuery, Store, Stored
from surefoot.store.handle import Handle

if TYPE_CHECKING:
    _Base = Store
else:
    _Base = object

_ALL: Final = 2**62


class Derived(Handle, _Base):
    """The verbs of `contract.Store` that a backend need not write."""

    id: bytes
    url: str

    def read_all(self, runs: Sequence[str]) -> list[Stored]:
        return [self.read(run) for run in runs]

    def rewrite(self, item: Rewrite) -> Conflict | None:
        return None if self.rewrite_together([item]) else Conflict(item.run)

    def scan_parts(self, after: int, limit: int) -> list[tuple[int, Part]]:
        names = sorted(self.part_ids())[after : after + limit]
        found = self.parts(names)
        return [(place, found[name]) for place, name in enumerate(names, after + 1) if name in found]

    def lost_rows(self) -> list[str]:
        return [listed.run for listed in self.runs(RunQuery(limit=_ALL)) if listed.row is None]

    def tally(self) -> dict[tuple[str, str], int]:
        rows = [listed.row for listed in self.runs(RunQuery(limit=_ALL))]
        return dict(Counter((row.status, row.reason) for row in rows if row is not None))

    def alive_until(self, worker: str) -> int | None:
        return None

    def proven_dead(self, worker: str) -> bool:
        return not self.alive(worker)

    def last_heard(self, worker: str) -> int | None:
        return None

    def holds(self) -> bool:
        return self.usable

    def now(self) -> int | None:
        return None

    def vitals(self) -> dict[str, float]:
        return {}

    @property
    def expected(self) -> int | None:
        return None

    @property
    def file(self) -> str:
        return ""

    def flaws(self) -> list[str]:
        return []

    def anchor_flaw(self) -> str:
        return ""

    def abandon(self) -> None:
        self.close()
