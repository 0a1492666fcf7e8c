"""The anchor of a store on a server: kept on the worker's side, so that a server that lost records is noticed.

After each commit of this process the position and the seal of its last record go to a small file (`anchor.py`), named
after the store. A server that does not have that record lost it: an old backup was put back, or a standby was promoted
that had not received everything. Which store was at the address is noted as well (`place.py`). The folder is
`SUREFOOT_ANCHORS`, or `.surefoot/anchors` where the process was started.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from surefoot.core.cure import ADOPT, Advice
from surefoot.errors import JournalRegressed, StoreUnavailable
from surefoot.store.anchor import Anchor, Mark, Unreadable, foreign
from surefoot.store.disk import make_folder
from surefoot.store.place import Site

FOLDER: Final = "SUREFOOT_ANCHORS"
_DEFAULT: Final = os.path.join(".surefoot", "anchors")


log = logging.getLogger("surefoot")


Known = Callable[[Mark], tuple[bool, int]]
"""Whether the server has that record, or a good reason not to have it; and where its records end."""


class Anchors:
    """Not thread-safe by itself: the store's writing lock covers it."""

    def __init__(self, store: bytes, where: str, place: Site) -> None:
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
        """After a commit. `adopted`: a person has accepted this store in place of the one that was noted here."""
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
        except (OSError, StoreUnavailable) as error:  # what was committed stays committed, noted or not
            self._given_up = True
            log.warning(
                "%s: no anchor can be kept (%s): a server that loses records would not be noticed from here. Set %s to a "
                "folder that this user can write to.",
                self._where, error, FOLDER,
            )  # fmt: skip

    def check(self, known: Known) -> None:
        """Whether the server still has what it acknowledged."""
        mark = self.newest
        if mark is None:
            return
        is_known, found = known(mark)
        if not is_known:
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
                Advice("the newer server?", "connect to it again"),
                ADOPT,
            ),
        )

    def close(self) -> None:
        if self._anchor is not None:
            with suppress(OSError):
                self._anchor.sync()
            self._anchor.close()
            self._anchor = None
            self._given_up = True

    def _read(self, anchor: Anchor) -> None:
        try:
            mark = anchor.read()
        except Unreadable:
            raise JournalRegressed(
                f"{self.path}: the anchor of {self._where} is unreadable, so nobody can say whether the store is complete.",
                facts={"anchor": self.path},
                cures=(Advice("the store is whole?", f"verify it from another machine, then remove {self.path}"),),
            ) from None
        if mark is not None and mark.store != self._store:
            raise foreign(self.path)

    def _begin(self, mark: Mark) -> None:
        make_folder(os.path.dirname(self.path))
        anchor = Anchor(self.path, create=True)
        with anchor.creating(1.0):
            self._read(anchor)
            if anchor.newest is None:
                anchor.begin(mark)
        anchor.advance(mark)
        self._anchor = anchor


def anchors_folder() -> str:
    return os.path.abspath(os.environ.get(FOLDER) or _DEFAULT)
