"""The list of runs: first the runs that need a person, then the rest, newest first.

Hosted runs are many and small, and people know the thread that they belong to: those of one thread stand together, under a
line of its own, and of them only the runs that somebody should look at are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.view import text
from surefoot.view.standing import ORDER, Stands

COLUMNS: Final = ("STATUS", "RUN", "WORKFLOW", "STARTED", "WHY")


class Seen(Struct, frozen=True):
    """A run as it was when the list was made."""

    run: str
    workflow: str
    status: str
    created: int
    """Microseconds since 1970."""
    labels: dict[str, str]
    stands: Stands

    @property
    def thread(self) -> str:
        """Of a hosted run: what it belongs to in its framework. Empty: it is a run by itself."""
        return self.labels.get("thread", "") if "/" in self.labels.get("task", "") else ""

    @property
    def is_to_be_seen(self) -> bool:
        """Whether a person has to act on it, or should know what it left."""
        return self.stands.rank <= len(ORDER)


def ordered(seen: Iterable[Seen]) -> list[Seen]:
    return sorted(seen, key=lambda one: (one.stands.rank, -one.created, one.run))


def row(seen: Seen, now: int) -> tuple[str, ...]:
    """One run in the list, by COLUMNS. Nothing here can act on a terminal."""
    since = text.ago(seen.created, now) if seen.created else ""
    names = map(text.visible, (seen.stands.status, seen.run, seen.workflow))
    return (*names, since, text.shorten(seen.stands.brief, 100))


def rows(seen: Sequence[Seen], now: int, *, is_cut: bool = False) -> Iterator[tuple[str, ...]]:
    """The list, by COLUMNS. `is_cut`: there may be more runs than these."""
    threads: dict[str, list[Seen]] = {}
    for one in seen:
        threads.setdefault(one.thread, []).append(one)
    for one in seen:
        together = threads.get(one.thread, [])
        if not one.thread or len(together) == 1:
            yield row(one, now)
        elif together[0] is one:
            yield from _thread(together, now, is_cut=is_cut)


def _thread(together: Sequence[Seen], now: int, *, is_cut: bool) -> Iterator[tuple[str, ...]]:
    """A line for the thread, and one for each run of it that is to be seen."""
    first, named = together[0], [one for one in together if one.is_to_be_seen]
    graphs = {one.workflow.partition(".")[0] for one in together}
    told = replace(first, run=f"thread {first.thread}", workflow=" ".join(sorted(graphs)))
    count = f"{len(together)}{' or more' if is_cut else ''} runs"
    rest = f"{len(named)} to look at" if named else f"each with --label thread={text.visible(first.thread)}"
    yield *row(replace(told, created=max(one.created for one in together)), now)[:-1], f"{count}, {rest}"
    for one in named:
        status, run, *more = row(one, now)
        yield status, f"  {run}", *more
