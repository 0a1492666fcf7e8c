"""Which store was at an address, kept beside the anchors, so that a vanished store is not mistaken for a new one.

An anchor is found by the store's id, which an emptied server no longer has. So there is one more small file per
address, named after its hosts, ports and database (never the user or the password), in the anchor's own format. It is
read before the server is asked: a noted store was there before, and has to be there now.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from contextlib import closing, suppress
from typing import Final

from surefoot.core.cure import ADOPT, Advice, Cure
from surefoot.errors import JournalRegressed
from surefoot.store.anchor import Anchor, Mark, Unreadable

_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9.-]+")
_NAME_LENGTH: Final = 80
_DROPPED: Final = "Was the schema surefoot dropped, an empty database put back, or is this another server than before?"


class Site:
    """One database, and its note."""

    def __init__(self, folder: str, name: str, where: str, *, how: str = _DROPPED) -> None:
        """`how`: a question to a person about how a store vanishes on this kind of server."""
        self._where = where
        self._how = how
        self._digest = hashlib.sha256(name.encode()).digest()
        spelled = _UNUSUAL.sub("_", name)[:_NAME_LENGTH]
        self.path = os.path.join(folder, f"at-{spelled}-{self._digest[:4].hex()}")

    def noted(self) -> bytes | None:
        """The store that was here; None: nothing was ever acknowledged from here."""
        try:
            with closing(Anchor(self.path, create=False)) as anchor:
                mark = anchor.read()
        except FileNotFoundError:
            return None
        except Unreadable:
            raise self._unreadable() from None
        if mark is not None and mark.seal != self._digest:
            raise self._unreadable()
        return mark.store if mark is not None else None

    def note(self, store: bytes, *, instead: bool) -> None:
        """Note that this store is here, and has acknowledged records. `instead`: replaces any earlier note."""
        with closing(Anchor(self.path, create=True)) as anchor, anchor.creating(1.0), suppress(Unreadable):
            if instead or anchor.read() is None:  # an unreadable note is only replaced if a person confirms that
                anchor.begin(Mark(store, 0, self._digest))

    def vanished(self) -> JournalRegressed:
        return self._regressed(
            "the database has no store any more, though records of one were acknowledged to this place. "
            f"{self._how} In a new store each run would start afresh.",
            Advice("gone for good?", self._away),
        )

    def replaced(self) -> JournalRegressed:
        return self._regressed(
            "the database holds another store than the one whose records were acknowledged to this place.",
            ADOPT,
            Advice("accepted elsewhere?", self._away),
        )

    @property
    def _away(self) -> str:
        return f"mv {shlex.quote(self.path)} {shlex.quote(self.path + '.old')}"

    def _regressed(self, why: str, *cures: Cure) -> JournalRegressed:
        return JournalRegressed(
            f"{self._where}: {why} Nothing was changed.",
            facts={"place": self.path},
            cures=(
                Advice("the right server?", "connect to it again"),
                Advice("have a backup?", "restore it there"),
                *cures,
            ),
        )

    def _unreadable(self) -> JournalRegressed:
        return JournalRegressed(
            f"{self.path}: the note of which store is in {self._where} is unreadable, so nobody can say whether it is "
            "the same one.",
            facts={"place": self.path},
            cures=(Advice("it is the same?", self._away),),
        )
