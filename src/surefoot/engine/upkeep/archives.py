"""Pruned runs in a bucket: a run's export is there, read back and checked, before its journal is deleted.

One object for each run, named by its store, its id and its last seal, in the format of `surefoot export`. It is created
once and never overwritten. Killed anywhere, the object is there or not yet, and never a tombstone without its object.
"""

from __future__ import annotations

import gzip
import zlib
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from surefoot.core.entry import RunPruned
from surefoot.core.forms import MAX_BYTES
from surefoot.engine.drive.outcome import not_found
from surefoot.engine.process import journal
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.upkeep import imports
from surefoot.engine.upkeep.exports import Contents, export, read_bytes
from surefoot.engine.upkeep.imports import Imported
from surefoot.engine.upkeep.tombstones import Candidate
from surefoot.errors import JournalCorrupt, NotFound, UsageError
from surefoot.store.bucket import Bucket, object_at
from surefoot.store.contract import Store

_LEVEL: Final = 6
_MOST: Final = 64 * MAX_BYTES
"""Bytes of a run that is unpacked into memory. A forged object must not fill it."""


class Archived(Struct, frozen=True):
    """Where a run is kept, and what proves that it is that one."""

    url: str
    sha256: str


class Archive:
    """Puts runs into a bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def keep(self, store: Store, found: Candidate) -> Archived:
        """Write the run, and read it back as a stranger would. `JournalCorrupt`, if it is not what is in the store."""
        packed = _packed(store, found.run)
        key = _key(store.id, found.run, found.head.seal)
        url = self._bucket.place.url(key)
        self._bucket.create(key, packed)  # If another call was here before, its object is judged like ours.
        held = self._bucket.get(key)
        if held is None:
            raise JournalCorrupt(f"{url}: what was written is not there.", run_id=found.run)
        contents = read_bytes(url, _unpacked(url, held.data))
        last = contents.records[-1]
        if (contents.exported.run, last.seq, last.seal) != (found.run, found.head.seq, found.head.seal):
            raise JournalCorrupt(f"{url} holds something else than run {found.run}.", run_id=found.run)
        return Archived(url, sha256(held.data).hexdigest())


def restore(runtime: Runtime, run: str, *, url: str = "", by: str = "", note: str = "") -> Imported:
    """Put an archived run in the place of its tombstone: in the store it comes from with the same seals.

    `url`: where its object is now, if it is no longer where the tombstone says.
    """
    found = journal.load(runtime.store, run)
    if found is None:
        raise not_found(run, runtime.store.url)
    stone = found[0].pruned
    if stone is None:
        raise UsageError(f"run {run} was not pruned: there is nothing to restore.")
    if not stone.archive:
        raise UsageError(f"run {run} was pruned without an archive. What it recorded is no longer kept.")
    where = url or stone.archive
    one = imports.admitted(runtime, _fetched(run, stone, where), where)
    if not one.found.is_back:
        raise JournalCorrupt(f"{where} is not the run that was pruned here.", run_id=run)
    return imports.carry_out(runtime, one, where, by=by, note=note)


def _fetched(run: str, stone: RunPruned, where: str) -> Contents:
    bucket, key = object_at(where)
    held = bucket.get(key)
    if held is None:
        raise NotFound(f"run {run}: {where} is gone: there is no such object.")
    if sha256(held.data).hexdigest() != stone.sha256:
        raise JournalCorrupt(f"run {run}: {where} is not what was archived: its SHA-256 is another one.", run_id=run)
    return read_bytes(where, _unpacked(where, held.data))


def _key(store: bytes, run: str, seal: bytes) -> str:
    return f"runs/{store.hex()}/{quote(run, safe='')}/{seal.hex()}.jsonl.gz"


def _packed(store: Store, run: str) -> bytes:
    lines = bytearray()
    export(store, run, lines.extend)
    return gzip.compress(bytes(lines), _LEVEL, mtime=0)


def _unpacked(where: str, data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(data, _MOST)
    except zlib.error as error:
        raise JournalCorrupt(f"{where} cannot be unpacked: {error}.") from error
    if not unpacker.eof or unpacker.unused_data:
        raise JournalCorrupt(f"{where} is cut off, or there is more behind its end.")
    return plain
