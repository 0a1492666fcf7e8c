"""What stores decide alike: whether records may stand where they are put, and whether a row is asked for."""

from __future__ import annotations

from surefoot.errors import UsageError
from surefoot.store.contract import Append, IndexRow, RunQuery


def check_positions(item: Append) -> None:
    """A writer that miscounts is stopped before it can make a journal with a hole."""
    seq = item.head.seq if item.head is not None else 0
    for record in item.records:
        seq += 1
        if record.seq != seq or record.run != item.run:
            raise UsageError(
                f"run {item.run}: record {record.seq} of run {record.run} cannot stand at position {seq}; "
                "records go right behind the head, in order."
            )
    if item.head is None and not item.records:
        raise UsageError(f"run {item.run}: a new run needs at least one record.")


def matches(query: RunQuery, row: IndexRow) -> bool:
    return (
        query.status in (None, row.status)
        and query.workflow in (None, row.workflow)
        and query.labels.items() <= row.labels.items()
    )
