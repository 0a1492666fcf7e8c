"""The records that were visible in the store when a position was returned.

Transactions take their positions in one order and commit in another: a record with a lower position may become visible
later. So with each position that is returned, its moment is noted, in PostgreSQL's own form: every transaction
before `end` had committed, except those `under_way`. "After that position" then means: not visible at that moment.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from msgspec import Struct

from surefoot.store.postgres import wire

_MOST: Final = 256


class Moment(Struct, frozen=True):
    end: int
    under_way: tuple[int, ...]

    @classmethod
    def read(cls, text: str) -> Moment:
        """From `pg_current_snapshot()`: xmin:xmax:xip,xip…"""
        _, end, under_way = text.split(":")
        return cls(int(end), tuple(map(int, filter(None, under_way.split(",")))))

    def params(self) -> tuple[wire.Param, wire.Param]:
        return wire.transaction(self.end), wire.transactions(self.under_way)


class Sighting(Struct, frozen=True):
    """All records visible at `since` were returned; of those visible later, by `until`, all up to this position."""

    since: Moment
    until: Moment | None = None


class Sightings:
    """By thread: one thread's results were not returned to another."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[int, int], Sighting] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, pos: int, sighting: Sighting) -> None:
        key = (threading.get_ident(), pos)
        with self._lock:
            self._seen[key] = sighting
            self._seen.move_to_end(key)
            if len(self._seen) > _MOST:
                self._seen.popitem(last=False)

    def of(self, pos: int) -> Sighting | None:
        with self._lock:
            return self._seen.get((threading.get_ident(), pos))
