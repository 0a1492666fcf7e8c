"""A store that lives and dies with the process: for tests, and for trying things out.

It keeps every promise of the contract but the last: what was acknowledged is not on disk.
"""

from __future__ import annotations

import os
import secrets
import threading
import weakref
from collections.abc import Sequence

from surefoot.core.seal import Record
from surefoot.errors import StoreUnavailable
from surefoot.store.contract import Append, Conflict, Head, IndexRow, Listed, RunQuery, Stored
from surefoot.store.rules import check_positions, matches


class MemoryStore:
    """The contract over two dicts and a lock."""

    def __init__(self, url: str = "memory:") -> None:
        self.id = secrets.token_bytes(16)
        self.url = url
        self._worker = secrets.token_hex(8)
        self._journals: dict[str, list[Record]] = {}
        self._rows: dict[str, IndexRow] = {}
        self._appended = 0
        self._lock = threading.Lock()
        self._refusal = ""
        _LIVE.add(self)

    @property
    def usable(self) -> bool:
        return not self._refusal

    @property
    def worker(self) -> str:
        self._refuse_unless_usable()
        return self._worker

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        for item in batch:
            check_positions(item)
        with self._locked():
            return [self._append(item) for item in batch]

    def read(self, run: str, after: int = 0, limit: int | None = None) -> Stored:
        with self._locked():
            journal = self._journals.get(run, [])
            return Stored(journal[after:][:limit], self._head(run))

    def changes(self) -> int:
        with self._locked():
            return self._appended

    def runs(self, query: RunQuery) -> list[Listed]:
        with self._locked():
            listed = [Listed(run, self._rows.get(run)) for run in reversed(self._journals)]
        wanted = [item for item in listed if item.row is None or matches(query, item.row)]
        return wanted[query.offset : query.offset + query.limit]

    def alive(self, worker: str) -> bool:
        self._refuse_unless_usable()
        return worker == self._worker

    def durability(self) -> dict[str, str]:
        self._refuse_unless_usable()
        return {"backend": "memory", "durable": "no: everything is gone when the process ends"}

    def close(self) -> None:
        self._refusal = self._refusal or f"{self.url}: this store has been closed."
        _LIVE.discard(self)

    def _append(self, item: Append) -> Conflict | None:
        if self._head(item.run) != item.head:
            return Conflict(item.run)
        if item.records:
            self._journals.setdefault(item.run, []).extend(item.records)
            self._appended += len(item.records)
        if item.row is not None:
            self._rows[item.run] = item.row
        return None

    def _head(self, run: str) -> Head | None:
        journal = self._journals.get(run)
        return Head(journal[-1].seq, journal[-1].seal) if journal else None

    def _locked(self) -> threading.Lock:
        self._refuse_unless_usable()
        return self._lock

    def _refuse_unless_usable(self) -> None:
        if self._refusal:
            raise StoreUnavailable(self._refusal)


_LIVE: weakref.WeakSet[MemoryStore] = weakref.WeakSet()


def _in_child() -> None:
    # A copy that goes its own way would look like the store and silently not be it.
    for store in list(_LIVE):
        store._refusal = (
            f"{store.url}: opened in another process (this one, {os.getpid()}, is its child). "
            "A store in memory cannot be shared; use sqlite:///."
        )


os.register_at_fork(after_in_child=_in_child)
