"""The runs that wait for a person, in the order in which people should look: what `view/inbox.py` makes items of.

What has to be decided comes first and is found whole: few runs stand still at a time. What is only to be known may be
thousands, so it is found page by page, the newest first. The index finds both; then each run's journal is read, for only that
is believed, and it may have more to say than one line. Runs whose process is gone have nothing in the index but who drove
them; they are looked at as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from surefoot.core.doubt import open_questions
from surefoot.core.need import DAMAGE, KINDS, QUESTION, TO_KNOW, Need, of_stops
from surefoot.core.state import RunState
from surefoot.engine.operate import run_list
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Damaged, UsageError
from surefoot.store.contract import ANY, IndexRow, RunQuery

_DECIDED: Final = tuple(kind for kind in KINDS if kind not in TO_KNOW)
_LAST: Final = len(KINDS)
_EVERY: Final = 2**62
_KNOWN_AT_ONCE: Final = 50


class Open(Struct, frozen=True):
    """A run that somebody should look at, as it is now."""

    run: str
    row: IndexRow | None
    """As the index has it; None: there is no row that can be read."""
    state: RunState | None
    """As its journal tells it; None: that is damaged."""
    driven: bool = False
    """Whether a living process drives it."""
    damage: str = ""
    cursor: str = ""
    """To go on behind it."""


class _Place(Struct, frozen=True, order=True):
    """Where in the list a run stands about which something has to be decided."""

    rank: int
    moment: int
    run: str


def waiting(runtime: Runtime, cursor: str = "") -> Iterator[Open]:
    """All of them, one by one; `cursor`: behind that one. Each is read when it is asked for."""
    known_after = _known_after(cursor)
    if known_after is None:
        yield from _to_decide(runtime, _placed(cursor))
    yield from _to_know(runtime, known_after or "")


def _placed(cursor: str) -> _Place | None:
    return _Place(*json.loads(cursor)[1:]) if cursor else None


def _known_after(cursor: str) -> str | None:
    """The run behind which the second part goes on; None: the cursor is in the first part."""
    if not cursor:
        return None
    try:
        part, *rest = json.loads(cursor)
        if part == "decide":
            _Place(*rest)
            return None
        (run,) = rest
        return str(run)
    except (ValueError, TypeError):
        raise UsageError(f"cursor={cursor[:80]!r} is none that was handed out") from None


def cut_off(runtime: Runtime) -> Iterator[Open]:
    """The runs whose process is gone."""
    return (_read(runtime, gone.run, gone, "") for gone in _cut_off(runtime))


# --- what has to be decided --------------------------------------------------------------------------


def _to_decide(runtime: Runtime, after: _Place | None) -> Iterator[Open]:
    found: dict[str, tuple[_Place, IndexRow | None]] = {}
    for kind in _DECIDED:
        for one in run_list.listed(runtime, RunQuery(need=kind, limit=_EVERY)):
            found.setdefault(one.run, (_place(one.run, one.row), one.row))
    for gone in _cut_off(runtime):
        if gone.run not in found:
            found[gone.run] = (_place_of_cut_off(runtime, gone), gone)
    for place, row in sorted(found.values(), key=lambda pair: pair[0]):
        if after is None or place > after:
            cursor = json.dumps(["decide", place.rank, place.moment, place.run])
            yield _read(runtime, place.run, row, cursor)


def _place(run: str, row: IndexRow | None) -> _Place:
    if row is None:
        return _Place(KINDS.index(DAMAGE), 0, run)
    return _placed_by(row.run, Need(row.need, until=row.until, since=row.since), row.created)


def _placed_by(run: str, need: Need, created: int) -> _Place:
    """Questions by when they have to be answered; all else by how long it waits."""
    rank = KINDS.index(need.kind) if need.kind in _DECIDED else _LAST
    since = need.since or created
    return _Place(rank, (need.until or 2**62) if need.kind == QUESTION else since, run)


def _cut_off(runtime: Runtime) -> Iterator[IndexRow]:
    """Runs whose process is gone."""
    alive: dict[str, bool] = {}
    for one in run_list.listed(runtime, RunQuery(claimed=True, limit=_EVERY)):
        if one.row is not None and one.row.worker:
            worker = one.row.worker
            if worker not in alive:
                alive[worker] = runtime.store.alive(worker)
            if not alive[worker]:
                yield one.row


def _place_of_cut_off(runtime: Runtime, row: IndexRow) -> _Place:
    """It may have died inside of an effect: then that is what has to be decided."""
    try:
        stops = open_questions(run_list.recorded(runtime, row.run))
    except Damaged:
        return _Place(KINDS.index(DAMAGE), 0, row.run)
    return _placed_by(row.run, of_stops(stops, since=row.created), row.created)


# --- what is only to be known ------------------------------------------------------------------------


def _to_know(runtime: Runtime, before: str) -> Iterator[Open]:
    while page := run_list.listed(runtime, RunQuery(need=ANY, limit=_KNOWN_AT_ONCE, before=before)):
        for one in page:
            if one.row is not None and one.row.need in TO_KNOW:
                yield _read(runtime, one.run, one.row, json.dumps(["know", one.run]))
        before = page[-1].run


def _read(runtime: Runtime, run: str, row: IndexRow | None, cursor: str) -> Open:
    try:
        state, driven = run_list.look(runtime, lambda: run_list.recorded(runtime, run))
    except Damaged as error:
        return Open(run, row, None, damage=error.summary, cursor=cursor)
    return Open(run, row, state, driven, cursor=cursor)
