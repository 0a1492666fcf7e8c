"""Entry <-> sealed bytes. A record that is not exactly what was written is never decoded.

The seal is SHA-256 over: format domain, store id, run id, then sequence, epoch, time, kind, schema,
codec, key id, the previous seal, the body's length and the body. So a record cannot be altered, moved
to another run, store or place, reordered or cut out without breaking its seal or its successor's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from struct import Struct as Layout
from typing import Any, Final

import msgspec

from surefoot.core.cure import NEWER_VERSION, Advice
from surefoot.core.entry import BY_PARTS, ELSEWHERE, KIND_OF, KINDS, LARGE, Entry, Kept
from surefoot.core.parts import Cut, Reference, cut
from surefoot.errors import CodecMissing, JournalCorrupt, SchemaMismatch, UsageError

FORMAT: Final = 1
SCHEMA: Final = 1
CODEC_JSON: Final = 1
NO_KEY: Final = 0
GENESIS: Final = bytes(32)
"""The seal before the first."""

_DOMAIN: Final = b"surefoot/journal/1\0"
_HEADER: Final = Layout(">QQQHHHH32sI")


class Record(msgspec.Struct, frozen=True):
    """One sealed entry, as stores keep it."""

    run: str
    seq: int
    epoch: int
    at: int
    """When it was appended: wall clock, microseconds since 1970. Never evidence of order."""
    kind: int
    schema: int
    codec: int
    key: int
    """Id of the key of a keyed seal; 0: unkeyed."""
    body: bytes
    seal: bytes


class Sealer:
    """Makes and checks the seals of one run in one store."""

    __slots__ = ("_prime", "run")

    def __init__(self, store_id: bytes, run: str) -> None:
        self.run = run
        name = run.encode("utf-8", "surrogatepass")
        self._prime = hashlib.sha256(_DOMAIN + store_id + len(name).to_bytes(4, "big") + name)

    def seal(self, *, seq: int, epoch: int, at: int, kind: int, body: bytes, previous: bytes) -> Record:
        digest = self._digest(seq, epoch, at, kind, SCHEMA, CODEC_JSON, NO_KEY, previous, body)
        return Record(self.run, seq, epoch, at, kind, SCHEMA, CODEC_JSON, NO_KEY, body, digest)

    def entry(
        self, entry: Entry, *, at: int, epoch: int = 0, after: tuple[int, bytes] = (0, GENESIS)
    ) -> tuple[Record, tuple[Cut, ...]]:
        """The record of an entry right after that position and seal, and the entry's values that are kept by parts."""
        kind, body, cuts = checked_body(entry)
        return self.seal(seq=after[0] + 1, epoch=epoch, at=at, kind=kind, body=body, previous=after[1]), cuts

    def holds(self, record: Record, previous: bytes) -> bool:
        """Whether the record is exactly what was written after `previous`."""
        try:
            found = self._digest(
                record.seq, record.epoch, record.at, record.kind, record.schema, record.codec, record.key,
                previous, record.body,
            )  # fmt: skip
        except Exception:  # noqa: BLE001 - a field outside its range is damage, whatever complains about it
            return False
        return found == record.seal

    def _digest(
        self, seq: int, epoch: int, at: int, kind: int, schema: int, codec: int, key: int, previous: bytes, body: bytes
    ) -> bytes:
        state = self._prime.copy()
        state.update(_HEADER.pack(seq, epoch, at, kind, schema, codec, key, previous, len(body)))
        state.update(body)
        return state.digest()


def verify(sealer: Sealer, records: Iterable[Record], *, seq: int = 0, seal: bytes = GENESIS) -> int:
    """Check that records continue the chain after (seq, seal). Returns how many of them hold."""
    good = 0
    for record in records:
        seq += 1
        if record.seq != seq or not sealer.holds(record, seal):
            return good
        seal = record.seal
        good += 1
    return good


_encode = msgspec.json.Encoder().encode
_decoders: Final[dict[int, Any]] = {kind: msgspec.json.Decoder(cls).decode for kind, cls in KINDS.items()}


def to_body(entry: Entry, before: Cut | None = None) -> tuple[int, bytes, tuple[Cut, ...]]:
    """The kind and the body of an entry, and those of its values that are kept by parts. `before`: see `parts.cut`."""
    body = _encode(entry)
    if len(body) <= LARGE:
        return KIND_OF[type(entry)], body, ()
    entry, cuts = _by_parts(entry, before)
    return KIND_OF[type(entry)], _encode(entry) if cuts else body, cuts


def checked_body(entry: Entry, before: Cut | None = None) -> tuple[int, bytes, tuple[Cut, ...]]:
    """As `to_body`, for entries with fields that came from user code unchanged: what we write, we can read."""
    try:
        kind, body, cuts = to_body(entry, before)
        _decoders[kind](body)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(f"{type(entry).__name__} cannot be recorded as given: {error}") from None
    return kind, body, cuts


def _by_parts(entry: Entry, before: Cut | None) -> tuple[Entry, tuple[Cut, ...]]:
    """The entry with its large values replaced by references."""
    large: dict[str, str] = {}
    cuts = []
    for name in BY_PARTS:
        value = getattr(entry, name, None)
        if isinstance(value, msgspec.Raw) and memoryview(value).nbytes > LARGE:
            found = cut(bytes(value), before)
            large[name] = found.reference.encode()
            cuts.append(found)
    fields = dict.fromkeys(large, ELSEWHERE)
    return msgspec.structs.replace(entry, large=large, **fields), tuple(cuts)


def from_record(record: Record) -> Entry:
    """The entry of a record whose seal was found to hold."""
    if record.codec != CODEC_JSON or record.key != NO_KEY:
        raise CodecMissing(
            f"run {record.run}: entry {record.seq} is stored with codec {record.codec}, key {record.key}, "
            "which this version of surefoot does not have.",
            run_id=record.run,
            cures=(NEWER_VERSION,),
        )
    decode = _decoders.get(record.kind)
    if decode is None or record.schema > SCHEMA:
        raise SchemaMismatch(
            f"run {record.run}: entry {record.seq} is of kind {record.kind}, schema {record.schema}: "
            "written by a newer version of surefoot.",
            run_id=record.run,
            cures=(Advice("use", "that version, or a newer one"),),
        )
    try:
        entry: Entry = decode(record.body)
        if entry.large:
            _refer(entry, record.seq)
    except (msgspec.MsgspecError, JournalCorrupt, ValueError, RecursionError) as error:
        raise JournalCorrupt(
            f"run {record.run}: the seal of entry {record.seq} holds, but its body cannot be read: {error}",
            run_id=record.run,
        ) from error
    return entry


def _refer(entry: Entry, seq: int) -> None:
    """Put the references in the place of the values."""
    for name, text in entry.large.items():
        if name not in BY_PARTS or bytes(getattr(entry, name, b"")) != bytes(ELSEWHERE):
            raise ValueError(f"it refers to {name!r}, which is not kept elsewhere")
        msgspec.structs.force_setattr(entry, name, Kept(seq, Reference.decode(text)))


def references(entry: Entry) -> list[Reference]:
    """The parts that an entry needs beside its record."""
    return [getattr(entry, name).reference for name in entry.large]
