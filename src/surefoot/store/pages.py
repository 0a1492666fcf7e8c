"""Pages of the run list, by key: the cost of a page is its own rows, however far down it is.

Runs are listed in the order in which they were made, newest first. The place of a run never changes. Without a filter every
run is listed, even one whose row is missing or damaged. With a filter the backend's index finds the rows, and runs
without a row are inserted at their places: without a row, the filter cannot exclude them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from surefoot.store.contract import Listed, RunQuery
from surefoot.store.rules import is_run, matches

NEWEST: Final = 2**63 - 1
"""A place after every run."""
_ROWS_PER_LOOK: Final = 512


class Placed(NamedTuple):
    """A run of the list, and its place in it: the higher, the newer."""

    n: int
    listed: Listed


Page = Callable[[int, int], list[Placed]]
"""At most that many runs before a place, newest first; fewer only at the end of the list."""


def listed(
    query: RunQuery,
    place: Callable[[str], int],
    page: Page,
    found: Callable[[RunQuery, int, int], list[Placed]],
    rowless: Callable[[], Sequence[Placed]],
) -> list[Listed]:
    """The result of the query. `place`: where a run is in the list (0: nowhere); `found`: a page of what the backend's
    index finds for the query, which may be more than it asks for; `rowless`: the runs without a row, newest first.
    """
    before = place(query.before) if query.before else NEWEST
    if query.status or query.workflow or query.labels or query.need or query.claimed or query.queue is not None:
        return collect(query, before, partial(found, query), rowless())
    return collect(query, before, page)


def collect(query: RunQuery, before: int, page: Page, lost: Sequence[Placed] = ()) -> list[Listed]:
    """The result of the query. `lost`: runs without a row, newest first, if `page` does not return them."""
    found: list[Listed] = []
    while len(found) < query.limit:
        size = min(query.limit - len(found), _ROWS_PER_LOOK)
        rows = page(before, size)
        end = rows[-1].n if len(rows) == size else -1
        here = [one for one in lost if end < one.n < before]
        both = sorted([*rows, *here], key=lambda one: -one.n) if here else rows
        found += [listed for _, listed in both if is_run(listed.run) and matches(query, listed.row)]
        if end < 0:
            break
        before = end
    return found[: query.limit]
