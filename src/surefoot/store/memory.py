"""A store in the memory of the process: for tests and experiments.

It keeps every promise of the contract but one: acknowledged records are not on disk.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence

from surefoot.core.parts import Part, lacking
from surefoot.core.seal import Record
from surefoot.errors import UsageError
from surefoot.store.backend import Announce, Backend
from surefoot.store.contract import (
    Conflict,
    Extend,
    Head,
    IndexRow,
    Limit,
    Listed,
    Reserved,
    Rewrite,
    RunQuery,
    Serving,
    Store,
    Stored,
    Wanted,
    WorkerSeen,
)
from surefoot.store.derived import Derived
from surefoot.store.findings import Finding, versions, warn
from surefoot.store.rules import (
    ALWAYS,
    SAID_KINDS,
    Ready,
    Room,
    check_positions,
    choose,
    due_by,
    earliest,
    is_run,
    matches,
    micros,
    room,
    serves,
)


class MemoryStore(Derived):
    """The contract over a few dicts and a lock."""

    # A child's copy would look like the store, but its writes would be lost.
    in_a_child = "A store in memory cannot be shared; use sqlite:///."

    def __init__(self, url: str = "memory:") -> None:
        self.id = secrets.token_bytes(16)
        self.url = self.where = url
        self._worker = secrets.token_hex(8)
        self._since = time.time_ns() // 1000
        self._serving: Serving | None = None
        self._journals: dict[str, list[Record]] = {}
        self._rows: dict[str, IndexRow] = {}
        self._parts: dict[bytes, Part] = {}
        self._quarantine: dict[str, list[Record]] = {}
        self._order: dict[int, Record] = {}
        """Every record by its position in the store."""
        self._appended = 0
        self._held: dict[str, int] = {}
        """Run -> until when it is reserved."""
        self._starts: dict[str, list[int]] = {}
        """Queue -> when runs of it were taken up."""
        self._lock = threading.Lock()
        self._news = threading.Condition(self._lock)
        self._written = self._heard = 0
        self._note_open()

    @property
    def worker(self) -> str:
        self._refuse_unless_usable()
        return self._worker

    def append(self, batch: Sequence[Extend]) -> list[Conflict | None]:
        check_positions(batch)
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
            listed = [Listed(run, self._rows.get(run)) for run in reversed(self._journals) if is_run(run)]
        if query.before:
            places = [item.run for item in listed]
            listed = listed[places.index(query.before) + 1 :] if query.before in places else []
        return [item for item in listed if matches(query, item.row)][: query.limit]

    def parts(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        with self._locked():
            return self._found(ids)

    def rewrite_together(self, items: Sequence[Rewrite], *, beyond: int = 0) -> bool:
        check_positions(items)
        with self._locked():
            if any(self._head(item.run) != item.found for item in items):
                return False
            self._appended = max(self._appended, beyond)
            for item in items:
                self._rewrite(item)
            return True

    def _rewrite(self, item: Rewrite) -> None:
        journal = self._journals.get(item.run, [])
        gone = journal[item.keep :]
        if item.forget:
            self._quarantine.pop(item.run, None)
        if item.archive:
            self._quarantine.setdefault(item.run, []).extend([*gone, *item.records[:1]])
        self._order = {pos: record for pos, record in self._order.items() if record not in gone}
        self._journals[item.run] = journal[: item.keep]
        self._append(Extend(item.run, self._head(item.run), item.records, item.row, item.cuts))

    def quarantined(self, run: str) -> list[Record]:
        with self._locked():
            return list(self._quarantine.get(run, []))

    def names(self, prefix: str = "") -> list[str]:
        with self._locked():
            return [name for name in self._journals if name.startswith(prefix)]

    def scan(self, after: int, limit: int) -> list[tuple[int, Record]]:
        with self._locked():
            return [(pos, record) for pos, record in self._order.items() if pos > after][:limit]

    def said(self, before: int, limit: int) -> list[tuple[int, Record]]:
        with self._locked():
            found = [(pos, one) for pos, one in self._order.items() if pos < before and one.kind in SAID_KINDS]
            return found[::-1][:limit]

    def part_ids(self) -> list[bytes]:
        with self._locked():
            return list(self._parts)

    def discard(self, parts: Sequence[bytes], upto: int) -> bool:
        with self._locked():
            if self._appended > upto:
                return False
            for name in parts:
                self._parts.pop(name, None)
            return True

    def serve(self, serving: Serving | None) -> None:
        self._refuse_unless_usable()
        self._serving = serving

    def workers(self) -> list[WorkerSeen]:
        self._refuse_unless_usable()
        return [WorkerSeen(self._worker, os.uname().nodename, os.getpid(), self._since, None, self._serving)]

    def alive(self, worker: str) -> bool:
        self._refuse_unless_usable()
        return worker == self._worker

    def reserve(self, wanted: Wanted) -> Reserved:
        with self._locked():
            rows = self._rows.values() if not wanted.only else filter(None, map(self._rows.get, wanted.only))
            served = [row for row in rows if serves(wanted, row.workflow, row.queue)]
            ready = [one for row in served for one in self._ready(row, wanted)]
            rooms = {limit.queue: self._room(limit, wanted) for limit in wanted.limits}
            chosen, opens = choose(ready, rooms, wanted.limit)
            for one in chosen:
                self._held[one.run] = wanted.now + micros(wanted.seconds)
                if one.queue in rooms:
                    self._starts.setdefault(one.queue, []).append(wanted.now)
            later = (row.wake for row in served if row.wake is not None and row.wake > wanted.now)
            return Reserved([one.run for one in chosen], earliest(opens, *later))

    def _ready(self, row: IndexRow, wanted: Wanted) -> list[Ready]:
        if self._held.get(row.run, wanted.now) > wanted.now:
            return []
        if row.worker and not self._is_busy(row, wanted):
            return [Ready(ALWAYS, row.run, row.queue)]
        return [Ready(row.wake, row.run, row.queue)] if row.wake is not None and row.wake <= due_by(wanted) else []

    def _is_busy(self, row: IndexRow, wanted: Wanted) -> bool:
        """Whether the run is being driven. Only this process can be alive here, and it knows its own runs."""
        return row.worker == self._worker and (row.worker != wanted.worker or row.run in wanted.driven)

    def _room(self, limit: Limit, wanted: Wanted) -> Room:
        rows = [row for row in self._rows.values() if row.queue == limit.queue]
        busy = sum(self._is_busy(row, wanted) or self._held.get(row.run, 0) > wanted.now for row in rows)
        began = wanted.now - micros(limit.seconds)
        starts = self._starts[limit.queue] = [at for at in self._starts.get(limit.queue, []) if at > began]
        return room(limit, now=wanted.now, busy=busy, started=len(starts), oldest=min(starts, default=None))

    def listen(self, seconds: float) -> None:
        with self._locked():
            self._news.wait_for(lambda: self._written != self._heard or self._refusal, seconds)
            self._heard = self._written
        self._refuse_unless_usable()

    def nudge(self) -> None:
        with self._locked():
            self._tell()

    def durability(self) -> dict[str, str]:
        self._refuse_unless_usable()
        return {"backend": "memory", "durable": "no: everything is gone when the process ends"}

    def close(self) -> None:
        if self._refusal:
            return  # closed; or a parent's, whose lock may be held by a thread of the parent
        with self._lock:
            self._refusal = f"{self.url}: this store has been closed."
            self._tell()
        self._note_closed()

    def _append(self, item: Extend) -> Conflict | None:
        if self._head(item.run) != item.head:
            return Conflict(item.run)
        for cut in item.cuts:
            self._parts.update({part.id: part for part in lacking(cut, frozenset(), self._found)})
        if item.records:
            self._journals.setdefault(item.run, []).extend(item.records)
            self._order.update(enumerate(item.records, self._appended + 1))
            self._appended += len(item.records)
        if item.row is not None:
            self._rows[item.run] = item.row
            self._held.pop(item.run, None)
        self._tell()
        return None

    def _tell(self) -> None:
        self._written += 1
        self._news.notify_all()

    def _found(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        return {name: self._parts[name] for name in ids if name in self._parts}

    def _head(self, run: str) -> Head | None:
        journal = self._journals.get(run)
        return Head(journal[-1].seq, journal[-1].seal) if journal else None

    def _locked(self) -> threading.Lock:
        self._refuse_unless_usable()
        return self._lock


class MemoryBackend(Backend):
    schemes = ("memory",)
    durable = False

    def place(self, url: str) -> str:
        name = url.partition(":")[2]
        if name.startswith("/"):
            raise UsageError(f"{url!r}: a store in memory has no path. Write memory: or memory:name.")
        return f"memory:{name}"

    def open(self, url: str, *, create: bool, announce: Announce | None) -> Store:
        return MemoryStore(self.place(url))

    def examine(self, url: str, store: Store | None, *, now: int) -> Iterator[Finding]:
        yield warn("durability", "a store in memory: its runs end with this process", "use sqlite:///runs.db")
        yield versions()
