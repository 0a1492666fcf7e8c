"""Rules that all stores share: which records may be appended, which rows match a query, and which worker gets work."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from surefoot.core.entry import KIND_OF, SAID
from surefoot.core.seal import Record
from surefoot.errors import UsageError
from surefoot.store.contract import ANY, RESERVED, Extend, IndexRow, Limit, Rewrite, RunQuery, Wanted

SAID_KINDS: Final = frozenset(KIND_OF[kind] for kind in SAID)
"""The numbers of entries that an audit lists."""
ALWAYS: Final = 0
"""The time from which a run of a dead worker is ready: it had its turn already, so it comes before all others."""


def check_positions(items: Iterable[Extend | Rewrite]) -> None:
    """Refuse a writer that miscounts before it can make a journal with a hole."""
    for item in items:
        if isinstance(item, Rewrite):
            _check_records(item.run, item.keep, item.records)
            continue
        _check_records(item.run, item.head.seq if item.head is not None else 0, item.records)
        if item.head is None and not item.records:
            raise UsageError(f"run {item.run}: a new run needs at least one record.")


def _check_records(run: str, seq: int, records: Sequence[Record]) -> None:
    """Refuse records that do not come right after that position of the run."""
    for record in records:
        seq += 1
        if record.seq != seq or record.run != run:
            raise UsageError(
                f"run {run}: record {record.seq} of run {record.run} cannot stand at position {seq}; "
                "records go right behind the head, in order."
            )


def is_run(name: str) -> bool:
    return not name.startswith(RESERVED)


def between(prefix: str) -> tuple[str, str]:
    """The first name that can begin so, and the first behind all that do, in the order of their UTF-8 bytes."""
    last = ord(prefix[-1]) + 1
    if not 0 < last <= sys.maxunicode or 0xD800 <= last < 0xE000:
        raise UsageError(f"names({prefix!r}): a prefix ends in a character that another one follows.")
    return prefix, prefix[:-1] + chr(last)


def matches(query: RunQuery, row: IndexRow | None) -> bool:
    """Whether a run passes a filter. Without a row it does: the filter cannot exclude it."""
    return row is None or (
        query.status in (None, row.status)
        and query.workflow in (None, row.workflow)
        and query.queue in (None, row.queue)
        and (query.need in (None, row.need) or (query.need == ANY and bool(row.need)))
        and (not query.claimed or bool(row.worker))
        and query.labels.items() <= row.labels.items()
    )


# --- which worker gets work -----------------------------------------------------------------------------------------


class Ready(NamedTuple):
    """A run that may be taken up. When sorted, the longest ready ones come first."""

    since: int
    run: str
    queue: str


class Room(NamedTuple):
    """How many more runs a queue with limits admits now."""

    free: int
    opens: int | None = None
    """When it admits one more, if that only depends on time."""


def micros(seconds: float) -> int:
    return int(seconds * 1_000_000)


def due_by(wanted: Wanted) -> int:
    """The time by which a run must have become ready to be handed out now."""
    return wanted.now if wanted.ready_before is None else min(wanted.now, wanted.ready_before - 1)


def serves(wanted: Wanted, workflow: str, queue: str) -> bool:
    return workflow in wanted.workflows and (not wanted.queues or queue in wanted.queues)


def room(limit: Limit, *, now: int, busy: int, started: int, oldest: int | None) -> Room:
    """`busy`: how many runs of the queue are driven, or about to be. `started`: how many were taken up within the limit's
    time; `oldest`: when the first of these was.
    """
    by_number = sys.maxsize if limit.concurrency is None else limit.concurrency - busy
    by_rate = sys.maxsize if limit.starts is None else limit.starts - started
    opens = (now if oldest is None else oldest) + micros(limit.seconds)
    return Room(min(by_number, by_rate), opens if by_rate <= by_number else None)


def choose(ready: Iterable[Ready], rooms: Mapping[str, Room], limit: int) -> tuple[list[Ready], int | None]:
    """At most `limit` runs, oldest first, as far as their queues admit them; and when a full queue admits one more."""
    chosen: list[Ready] = []
    free = {queue: room.free for queue, room in rooms.items()}
    opens = None
    for one in sorted(ready):
        if len(chosen) == limit:
            break
        if free.get(one.queue, 1) > 0:
            chosen.append(one)
            if one.queue in free:
                free[one.queue] -= 1
        else:
            opens = earliest(opens, rooms[one.queue].opens)
    return chosen, opens


def earliest(*times: int | None) -> int | None:
    return min((each for each in times if each is not None), default=None)
