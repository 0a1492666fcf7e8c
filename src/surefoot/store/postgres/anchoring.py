"""The anchor of a PostgreSQL store: on the worker's side, so that a server that lost records is noticed.

After each commit of this process the position and the seal of its last record go to a small file (`store/anchor.py`),
named after the store. A server that does not have that record lost it: an old backup was put back, or a standby was
promoted that had not received everything. Which store the database had is noted as well (`place.py`). The folder is `SUREFOOT_ANCHORS`, or `.surefoot/anchors` where the process
was started.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Final

from surefoot.core.seal import GENESIS, Record, Sealer
from surefoot.errors import JournalRegressed, StoreUnavailable
from surefoot.store.anchor import Anchor, Mark, Unreadable, foreign
from surefoot.store.postgres import wire
from surefoot.store.postgres.connection import Connection
from surefoot.store.postgres.place import Place

FOLDER: Final = "SUREFOOT_ANCHORS"
_DEFAULT: Final = os.path.join(".surefoot", "anchors")

_KNOWN: Final = b"""
    SELECT (SELECT seal FROM surefoot.entries WHERE pos = $1) IS NOT DISTINCT FROM $2
        OR EXISTS (SELECT FROM surefoot.quarantine WHERE pos = $1 AND seal = $2)
        OR EXISTS (SELECT FROM surefoot.erased WHERE positions @> $1),
        coalesce((SELECT max(pos) FROM surefoot.entries), 0)"""
_INSTEAD: Final = b"""
    SELECT e.run, e.seq, e.epoch, e.at, e.kind, e.schema, e.codec, e.key, e.body, e.seal, b.seal
    FROM surefoot.entries e LEFT JOIN surefoot.entries b ON b.run = e.run AND b.seq = e.seq - 1 WHERE e.pos = $1"""
_NUMBER, _BYTES = wire.to_int, wire.to_bytes
_RECORD: Final = (wire.to_text, *[_NUMBER] * 7, _BYTES, _BYTES, lambda value: value or GENESIS)

log = logging.getLogger("surefoot")


class Anchoring:
    """Not thread-safe by itself: the store's writing lock covers it."""

    def __init__(self, store: bytes, where: str, place: Place) -> None:
        self._store = store
        self._where = where
        self._place = place
        self._is_placed = False
        self.path = os.path.join(os.path.dirname(place.path), store.hex())
        self._anchor: Anchor | None = None
        self._given_up = False
        with suppress(FileNotFoundError):
            self._anchor = Anchor(self.path, create=False)
            self._read(self._anchor)

    @property
    def newest(self) -> Mark | None:
        return self._anchor.newest if self._anchor is not None else None

    def note(self, pos: int, seal: bytes, *, adopted: bool = False) -> None:
        """After a commit. `adopted`: this store is accepted in the place of whatever was here."""
        mark = Mark(self._store, pos, seal)
        if self._given_up:
            return
        try:
            if self._anchor is not None:
                self._anchor.advance(mark)
            else:
                self._begin(mark)
            if not self._is_placed or adopted:
                self._place.note(self._store, instead=adopted)
                self._is_placed = True
        except (OSError, StoreUnavailable) as error:  # what was committed stays so, with a note of it or without
            self._given_up = True
            log.warning(
                "%s: no anchor can be kept (%s): a server that loses records would not be noticed from here. Set %s to a "
                "folder that this user can write to.",
                self._where, error, FOLDER,
            )  # fmt: skip

    def check(self, connection: Connection, *, silence: float) -> None:
        """Whether the server still has what it acknowledged."""
        mark = self.newest
        if mark is None:
            return
        params = (wire.integer(mark.pos), wire.raw(mark.seal))
        ((known, found),) = connection.ask(_KNOWN, params, (wire.to_bool, _NUMBER), silence=silence)
        if not known and not self._is_damage(connection, mark, silence):
            raise self.regressed(
                f"the database ends at record {found}" if found < mark.pos else "that one is not there"
            )

    def regressed(self, found: str) -> JournalRegressed:
        pos = self.newest.pos if self.newest is not None else 0
        return JournalRegressed(
            f"{self._where}: the store is older than it once was: this place saw record {pos} acknowledged, but {found}. "
            "Was an old backup put back, or a standby promoted that had not received everything?",
            facts={"expected": pos, "found": found, "anchor": self.path},
            cures=(
                ("the newer server?", "connect to it again"),
                ("really lost?", "surefoot adopt --reason TEXT"),
            ),
        )

    def close(self) -> None:
        if self._anchor is not None:
            with suppress(OSError):
                self._anchor.sync()
            self._anchor.close()
            self._anchor = None
            self._given_up = True

    def _is_damage(self, connection: Connection, mark: Mark, silence: float) -> bool:
        """Another history has records that hold. One that does not is damaged, and whoever reads its run is told so."""
        rows = connection.ask(_INSTEAD, (wire.integer(mark.pos),), _RECORD, silence=silence)
        if not rows:
            return False
        *fields, before = rows[0]
        record = Record(*fields)
        return not Sealer(self._store, record.run).holds(record, before)

    def _read(self, anchor: Anchor) -> None:
        try:
            mark = anchor.read()
        except Unreadable:
            raise JournalRegressed(
                f"{self.path}: the anchor of {self._where} is unreadable, so nobody can say whether the store is complete.",
                facts={"anchor": self.path},
                cures=(("the store is whole?", f"remove {self.path}, after surefoot verify on another machine"),),
            ) from None
        if mark is not None and mark.store != self._store:
            raise foreign(self.path)

    def _begin(self, mark: Mark) -> None:
        _make_folder(os.path.dirname(self.path))
        anchor = Anchor(self.path, create=True)
        anchor.lock_for_creation(1.0)
        try:
            self._read(anchor)
            if anchor.newest is None:
                anchor.begin(mark)
        finally:
            anchor.unlock()
        anchor.advance(mark)
        self._anchor = anchor


def anchors_folder() -> str:
    return os.path.abspath(os.environ.get(FOLDER) or _DEFAULT)


def _make_folder(folder: str) -> None:
    if not os.path.isdir(folder):
        _make_folder(os.path.dirname(folder))
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
