"""Pages of the run list, by key: however far down a page is, it costs what is on it.

Runs are listed in the order in which they were made, newest first; the place of a run never changes. Without a filter every
run is met, and one whose row is missing or damaged with it. With a filter the backend's index finds the rows, and runs
without a row are put between them, wherever they belong: a filter hides nothing that nobody can judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from surefoot.store.contract import Listed, RunQuery
from surefoot.store.rules import is_run, matches

NEWEST: Final = 2**63 - 1
"""Before that, everything is."""
_ROWS_PER_LOOK: Final = 512


class Placed(NamedTuple):
    """A run of the list, and its place in it: the higher, the newer."""

    n: int
    listed: Listed


Page = Callable[[int, int], list[Placed]]
"""At most so many runs before a place, newest first; fewer than that only at the end of the list."""


def is_filtered(query: RunQuery) -> bool:
    return bool(query.status or query.workflow or query.labels or query.need or query.queue is not None)


def collect(query: RunQuery, before: int, page: Page, lost: Sequence[Placed] = ()) -> list[Listed]:
    """What the query asks for. `lost`: runs without a row, newest first, if `page` does not meet them."""
    found: list[Listed] = []
    while len(found) < query.limit:
        size = min(query.limit - len(found), _ROWS_PER_LOOK)
        rows = page(before, size)
        end = rows[-1].n if len(rows) == size else -1
        here = [one for one in lost if end < one.n < before]
        both = sorted([*rows, *here], key=lambda one: -one.n) if here else rows
        found += [listed for _, listed in both if is_run(listed.run) and _fits(query, listed)]
        if end < 0:
            break
        before = end
    return found[: query.limit]


def _fits(query: RunQuery, listed: Listed) -> bool:
    return listed.row is None or matches(query, listed.row)
