"""What lists show, page by page: what waits for a person, runs by what somebody looks for, and the store as a whole."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from weakref import WeakKeyDictionary

from starlette.datastructures import QueryParams

from surefoot.core.need import KINDS as NEEDS
from surefoot.core.need import TO_KNOW
from surefoot.engine.operate import run_list
from surefoot.engine.operate.inbox import cut_off, waiting
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import UsageError
from surefoot.store.contract import RunQuery
from surefoot.view import facts
from surefoot.view import inbox as inboxes
from surefoot.view.facts import Facts

KEPT_SECONDS = 2.0
MOST_COUNTED = 100
"""Of each kind. A number that large says: look at the inbox."""


def inbox(runtime: Runtime, *, kinds: Sequence[str] = (), cursor: str = "", limit: int) -> inboxes.Page:
    """As `surefoot inbox`."""
    now = runtime.clock.now()
    return inboxes.page(waiting(runtime, cursor), runtime.store.workers(), now=now, kinds=kinds, limit=limit)


_tallies: WeakKeyDictionary[Runtime, tuple[float, dict[tuple[str, str], int]]] = WeakKeyDictionary()


def tally(runtime: Runtime) -> dict[tuple[str, str], int]:
    """How many runs there are by (status, reason), by the index. It costs a look at every line, so it is kept for a moment."""
    kept = _tallies.get(runtime)
    if kept is None or time.monotonic() - kept[0] > KEPT_SECONDS:
        kept = _tallies[runtime] = time.monotonic(), runtime.store.tally()
    return kept[1]


def to_decide(runtime: Runtime) -> int:
    """How many runs wait for a decision: by the index, not more than are counted, and those whose process is gone."""
    kinds = [kind for kind in NEEDS if kind not in TO_KNOW]
    found = {one.run for kind in kinds for one in run_list.listed(runtime, RunQuery(need=kind, limit=MOST_COUNTED))}
    workers, now = runtime.store.workers(), runtime.clock.now()
    gone = (one for one in islice(cut_off(runtime), MOST_COUNTED) if one.run not in found)
    return len(found) + sum(any(item.decide for item in inboxes.items(one, workers, now=now)) for one in gone)


def query(given: QueryParams, limit: int) -> RunQuery:
    """What somebody looks for, as `surefoot runs` takes it. `label=NAME=VALUE` may be there several times."""
    labels = {}
    for one in given.getlist("label"):
        name, equals, value = one.partition("=")
        if not name or not equals:
            raise UsageError(f"label={one[:40]!r}: write NAME=VALUE")
        labels[name] = value
    return run_list.checked(
        RunQuery(
            status=given.get("status") or None,
            workflow=given.get("workflow") or None,
            labels=labels,
            limit=limit,
            need=given.get("need") or None,
            queue=given.get("queue") or None,
            before=given.get("cursor") or given.get("before") or "",
        )
    )


def store(runtime: Runtime) -> Facts:
    """What is known of the store without reading all of it."""
    runs: dict[str, int] = {}
    for (status, _), many in tally(runtime).items():
        runs[status] = runs.get(status, 0) + many
    found = runtime.store
    return facts.store(
        found.url,
        runs,
        found.durability(),
        anchor=found.anchor_flaw(),
        position=found.changes(),
        now=runtime.clock.now(),
    )
