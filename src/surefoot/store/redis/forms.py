"""Records, heads, parts and rows as the bytes that Redis keeps. What comes back is not trusted: it may be anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from struct import Struct as Layout
from struct import error as LayoutError  # noqa: N812 - a class, which the module names like a function
from typing import Final

import msgspec

from surefoot.core.parts import Part
from surefoot.core.seal import Record
from surefoot.errors import JournalCorrupt, UsageError
from surefoot.store.contract import ANY, Head, IndexRow, RunQuery

_RECORD: Final = Layout(">32sQQQHHHH")
_STORED: Final = Layout(">Q32sQQQHHHH")
_HEAD: Final = Layout(">Q32s")
_PART: Final = Layout(">HHQ")
_row_of: Final = msgspec.json.Decoder(IndexRow).decode

SEAL_BYTES: Final = 8
"""So much of a seal is on the trail of all positions."""


def name_bytes(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"a run id or an index row cannot be stored: {error}") from error


def record_bytes(record: Record) -> bytes:
    """Without its position in the store, which the server puts in front."""
    return (
        _RECORD.pack(
            record.seal, record.seq, record.epoch, record.at, record.kind, record.schema, record.codec, record.key
        )
        + record.body
    )


def to_record(run: str, stored: bytes) -> tuple[int, Record]:
    """The record, and its position in the store."""
    try:
        pos, seal, seq, epoch, at, kind, schema, codec, key = _STORED.unpack_from(stored)
    except LayoutError:
        raise JournalCorrupt(
            f"run {run}: a stored record has {len(stored)} bytes, too few for any record.", run_id=run
        ) from None
    return pos, Record(run, seq, epoch, at, kind, schema, codec, key, stored[_STORED.size :], seal)


def to_records(run: str, found: Sequence[bytes]) -> list[Record]:
    return [to_record(run, stored)[1] for stored in found]


def head_bytes(head: Head | None) -> bytes:
    return b"" if head is None else _HEAD.pack(head.seq, head.seal)


def to_head(run: str, stored: bytes) -> Head | None:
    if not stored:
        return None
    try:
        return Head(*_HEAD.unpack(stored))
    except LayoutError:
        raise JournalCorrupt(f"run {run}: its stored head has {len(stored)} bytes.", run_id=run) from None


def part_bytes(part: Part) -> bytes:
    return _PART.pack(part.kind, part.codec, part.size) + part.body


def to_part(name: bytes, stored: bytes) -> Part | None:
    """None: it is missing, or too short to be one, which is the same."""
    if len(stored) < _PART.size:
        return None
    kind, codec, size = _PART.unpack_from(stored)
    return Part(name, kind, codec, size, stored[_PART.size :])


def row_bytes(row: IndexRow | None) -> tuple[bytes, bytes]:
    """What scripts read of a row, and the row. Both empty: there is none."""
    if row is None:
        return b"", b""
    lane = _json([row.workflow, row.queue])
    wake = "" if row.wake is None else str(row.wake)
    lists = _json([lane, row.queue, wake, row.worker, _json([row.status, row.reason]), *_lists_of(row)])
    return lists.encode(), _json(row).encode()


def to_row(stored: bytes) -> IndexRow | None:
    """The row, without what scripts read of it; None: it is missing or damaged."""
    try:
        return _row_of(stored.partition(b"\n")[2])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def lists_for(query: RunQuery) -> list[bytes]:
    """The lists that all runs are in for which the query asks."""
    return [name.encode() for name in _named(query)]


def _named(query: RunQuery) -> Iterator[str]:
    for field in ("status", "workflow", "queue"):
        value = getattr(query, field)
        if value:
            yield f"{field}:{value}"
    if query.need is not None:
        yield "need" if query.need == ANY else f"need:{query.need}"
    if query.claimed:
        yield "claimed"
    yield from _labelled(query.labels)


def _lists_of(row: IndexRow) -> Iterator[str]:
    for field in ("status", "workflow", "queue", "need"):
        value = getattr(row, field)
        if value:
            yield f"{field}:{value}"
    if row.need:
        yield "need"
    if row.worker:
        yield "claimed"
    yield from _labelled(row.labels)


def _labelled(labels: dict[str, str]) -> Iterator[str]:
    for name, value in labels.items():
        yield f"label:{sha256(_json([name, value]).encode()).hexdigest()[:16]}"


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError as error:
        raise UsageError(f"a run id or an index row cannot be stored: {error}") from error
