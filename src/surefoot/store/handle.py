"""A handle of a store refuses everything after it is closed, given up, or inherited by a forked child.

A forked child has copies of its parent's sockets, files and locks. Using them, or only closing them, would damage the
parent's store. So every open handle is noted here, and in a child each of them refuses everything and is never closed.
"""

from __future__ import annotations

import os
import weakref
from typing import Final

from surefoot.errors import StoreUnavailable
from surefoot.store.contract import NOT_IN_A_CHILD


class Handle:
    """The base of every store."""

    where: str
    """The first words of its refusals."""
    in_a_child: str = NOT_IN_A_CHILD
    _refusal: str = ""

    @property
    def usable(self) -> bool:
        """False once closed, given up, or inherited from a parent process: open it again."""
        return not self._refusal

    def _note_open(self) -> None:
        _LIVE.add(self)

    def _note_closed(self) -> None:
        _LIVE.discard(self)

    def _refuse_unless_usable(self) -> None:
        if self._refusal:
            raise StoreUnavailable(self._refusal)


_LIVE: Final[weakref.WeakSet[Handle]] = weakref.WeakSet()
_INHERITED: Final[list[Handle]] = []
"""Kept for ever: the interpreter closes objects without a reference."""


def _in_child() -> None:
    for handle in list(_LIVE):
        handle._refusal = (
            f"{handle.where}: opened in another process (this one, {os.getpid()}, is its child). {handle.in_a_child}"
        )
        _INHERITED.append(handle)
    _LIVE.clear()


os.register_at_fork(after_in_child=_in_child)
