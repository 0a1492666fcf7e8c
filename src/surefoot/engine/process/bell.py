"""All writes into a run except those of the session that drives it: they notify the engine of a run that can go on.

Here and nowhere else. The bell rings after the commit, so a notified engine finds the entry. A bell that is lost, or
breaks, costs time and nothing else: engines look from time to time for runs that have been ready for a while. The
session that drives a run does not ring: its drive ends with a value that has the time of the next drive.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from surefoot.engine.process import engines
from surefoot.store.contract import Extend, IndexRow, Journals, Rewrite, Store

log = logging.getLogger("surefoot")


def append(store: Journals, item: Extend) -> bool:
    """Whether it was written: not if the head has changed."""
    return append_each(store, [item])[0]


def append_each(store: Journals, items: Sequence[Extend]) -> list[bool]:
    """The same for many at once, each by itself."""
    written = [conflict is None for conflict in store.append(items)] if items else []
    for item, is_written in zip(items, written, strict=True):
        if is_written:
            _ring(store.url, item.row)
    return written


def rewrite(store: Store, *items: Rewrite, beyond: int = 0) -> bool:
    """All of them or none, as above; `beyond` as in `Upkeep.rewrite_together`."""
    is_written = store.rewrite_together(items, beyond=beyond)
    for item in items if is_written else ():
        _ring(store.url, item.row)
    return is_written


def _ring(store: str, row: IndexRow | None) -> None:
    if row is None or row.wake is None or row.worker:
        return
    try:
        engines.bell().ring(row, store)
    except Exception as error:  # noqa: BLE001 - the entry is recorded, and its writer is told so
        log.warning("run %s: the engine could not be told that it can go on: %r", row.run, error)
