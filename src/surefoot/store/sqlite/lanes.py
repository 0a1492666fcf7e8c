"""Which runs of a SQLite store a worker may take up: found by index, a few at a time, with any number of sleeping runs.

A queue of one workflow is a *lane*. Each lane is read for its first few runs that are due, so that neither a long
queue at its limit nor the work of others hides runs for this worker. Without work, a search costs a few queries per
lane. The same queries run twice: outside a transaction, and, if they find a run, once more inside the transaction that
reserves. Only the second answer counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from surefoot.store.contract import Limit, Wanted
from surefoot.store.rules import ALWAYS, Ready, Room, choose, due_by, earliest, micros, room, serves

Ask = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]

# `SELECT DISTINCT` would read every entry of the index; this query jumps from one value to the next.
WORKERS: Final = (
    "WITH RECURSIVE w (worker) AS (SELECT min(worker) FROM runs WHERE worker > '' UNION ALL "
    "SELECT (SELECT min(r.worker) FROM runs r WHERE r.worker > '' AND r.worker > w.worker) FROM w "
    "WHERE worker IS NOT NULL) SELECT worker FROM w WHERE worker IS NOT NULL"
)
_LANES: Final = (
    "WITH RECURSIVE lane (workflow, queue) AS (SELECT value, "
    "(SELECT min(r.queue) FROM runs r WHERE r.workflow = value AND r.wake IS NOT NULL) FROM json_each(?) UNION ALL "
    "SELECT workflow, (SELECT min(r.queue) FROM runs r WHERE r.workflow = lane.workflow AND r.queue > lane.queue "
    "AND r.wake IS NOT NULL) FROM lane WHERE queue IS NOT NULL) "
    "SELECT workflow, queue, "
    "EXISTS (SELECT 1 FROM runs r WHERE r.workflow = lane.workflow AND r.queue = lane.queue AND r.wake <= ?2), "
    "(SELECT min(r.wake) FROM runs r WHERE r.workflow = lane.workflow AND r.queue = lane.queue AND r.wake > ?2) "
    "FROM lane WHERE queue IS NOT NULL"
)
_DUE: Final = (
    "SELECT wake, run, queue FROM runs WHERE workflow = ? AND queue = ? AND wake <= ? "
    "AND (held IS NULL OR held <= ?) ORDER BY wake LIMIT ?"
)
_CLAIMED: Final = (
    "SELECT run, workflow, queue FROM runs WHERE worker > '' AND worker = ? AND (held IS NULL OR held <= ?)"
)
_NAMED: Final = (
    "SELECT run, workflow, queue, wake, worker FROM runs WHERE run IN (SELECT value FROM json_each(?)) "
    "AND (held IS NULL OR held <= ?)"
)
_CLAIMS: Final = "SELECT worker, run FROM runs WHERE worker > '' AND queue = ?"
_HELD: Final = "SELECT run FROM runs WHERE held > ? AND queue = ?"
_STARTED: Final = "SELECT count(*), min(at) FROM starts WHERE queue = ? AND at > ? AND at <= ?"

_HOLD: Final = "UPDATE runs SET held = ? WHERE run = ?"
_START: Final = "INSERT OR IGNORE INTO starts (queue, at, run) VALUES (?, ?, ?)"
_FORGET_STARTS: Final = "DELETE FROM starts WHERE queue = ? AND at <= ?"


class Found(NamedTuple):
    chosen: list[Ready]
    next_wake: int | None


def find(ask: Ask, wanted: Wanted, gone: Collection[str]) -> Found:
    """The runs that could be taken up now; `gone` are the dead workers."""
    ready, wakes = _named(ask, wanted, gone) if wanted.only else _in_lanes(ask, wanted, gone)
    queues = {one.queue for one in ready}
    rooms = {limit.queue: _room(ask, wanted, limit, gone) for limit in wanted.limits if limit.queue in queues}
    chosen, opens = choose(ready, rooms, wanted.limit)
    return Found(chosen, earliest(opens, *wakes))


def _in_lanes(ask: Ask, wanted: Wanted, gone: Collection[str]) -> tuple[list[Ready], list[int | None]]:
    """The runs that are ready, and when the next ones will be."""
    lanes = [lane for lane in ask(_LANES, (_json(wanted.workflows), wanted.now)) if serves(wanted, lane[0], lane[1])]
    ready = _left_behind(ask, wanted, gone)
    for workflow, queue, due, _ in lanes:
        if due:
            ready += map(Ready._make, ask(_DUE, (workflow, queue, due_by(wanted), wanted.now, wanted.limit)))
    return ready, [wake for _, _, _, wake in lanes]


def _named(ask: Ask, wanted: Wanted, gone: Collection[str]) -> tuple[list[Ready], list[int | None]]:
    """The same, among the runs that are named in `only`."""
    ready: list[Ready] = []
    wakes: list[int | None] = []
    for run, workflow, queue, wake, worker in ask(_NAMED, (_json(wanted.only), wanted.now)):
        if not serves(wanted, workflow, queue):
            continue
        if worker in gone or (worker == wanted.worker and run not in wanted.driven):
            ready.append(Ready(ALWAYS, run, queue))
        elif wake is not None and wake <= due_by(wanted):
            ready.append(Ready(wake, run, queue))
        elif wake is not None and wake > wanted.now:
            wakes.append(wake)
    return ready, wakes


def take(ask: Ask, wanted: Wanted, gone: Collection[str]) -> Found:
    """Inside a transaction: reserve these runs for a while."""
    found = find(ask, wanted, gone)
    until = wanted.now + micros(wanted.seconds)
    rated = {limit.queue: limit for limit in wanted.limits if limit.starts is not None}
    for one in found.chosen:
        ask(_HOLD, (until, one.run))
        if one.queue in rated:
            ask(_FORGET_STARTS, (one.queue, wanted.now - micros(rated[one.queue].seconds)))
            ask(_START, (one.queue, wanted.now, one.run))
    return found


def _left_behind(ask: Ask, wanted: Wanted, gone: Collection[str]) -> list[Ready]:
    """Runs that are claimed by dead workers, or by this process, which no longer drives them."""
    driven = frozenset(wanted.driven)
    return [
        Ready(ALWAYS, run, queue)
        for worker in (*gone, wanted.worker)
        for run, workflow, queue in ask(_CLAIMED, (worker, wanted.now))
        if serves(wanted, workflow, queue) and not (worker == wanted.worker and run in driven)
    ]


def _room(ask: Ask, wanted: Wanted, limit: Limit, gone: Collection[str]) -> Room:
    now, driven = wanted.now, frozenset(wanted.driven)
    claims = {
        run
        for worker, run in ask(_CLAIMS, (limit.queue,))
        if worker not in gone and (worker != wanted.worker or run in driven)
    }
    held = {run for (run,) in ask(_HELD, (now, limit.queue))}
    ((started, oldest),) = ask(_STARTED, (limit.queue, now - micros(limit.seconds), now))
    return room(limit, now=now, busy=len(claims | held), started=started, oldest=oldest)


def _json(names: Sequence[str]) -> str:
    return msgspec.json.encode(list(names)).decode()
