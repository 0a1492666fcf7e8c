"""What stores decide alike: whether records may stand where they are put, and what is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.core.seal import Record
from surefoot.errors import UsageError
from surefoot.store.contract import RESERVED, Append, IndexRow, RunQuery


def check_positions(item: Append) -> None:
    """A writer that miscounts is stopped before it can make a journal with a hole."""
    check_records(item.run, item.head.seq if item.head is not None else 0, item.records)
    if item.head is None and not item.records:
        raise UsageError(f"run {item.run}: a new run needs at least one record.")


def check_records(run: str, seq: int, records: Sequence[Record]) -> None:
    """Whether the records of this run stand right behind that position."""
    for record in records:
        seq += 1
        if record.seq != seq or record.run != run:
            raise UsageError(
                f"run {run}: record {record.seq} of run {record.run} cannot stand at position {seq}; "
                "records go right behind the head, in order."
            )


def is_run(name: str) -> bool:
    return not name.startswith(RESERVED)


def matches(query: RunQuery, row: IndexRow) -> bool:
    return (
        query.status in (None, row.status)
        and query.workflow in (None, row.workflow)
        and query.labels.items() <= row.labels.items()
    )
