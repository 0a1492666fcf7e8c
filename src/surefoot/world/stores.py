"""How to distinguish a surefoot store from the user's files and databases, without opening it.

This process may have it open, and closing a second descriptor would drop SQLite's locks on it. So its anchor, the file
beside every store, identifies it: by its name and its size.
"""

from __future__ import annotations

import os
import stat
from typing import Final

from surefoot.world.base import NotObservable
from surefoot.world.paths import shown

APPLICATION_ID: Final = 0x53464A31
"""The application id of a store's database; a copy of the store's own, which this layer may not import."""
ANCHOR: Final = "-anchor"
ANCHOR_BYTES: Final = 582
_BESIDE: Final = (ANCHOR, "-wal", "-shm", "-journal")


def refuse_store(path: str) -> None:
    real = os.path.realpath(path)
    if _has_anchor(real) or any(real.endswith(end) and _has_anchor(real[: -len(end)]) for end in _BESIDE):
        raise is_a_store(path)


def refuse_stores(paths: list[str]) -> None:
    """The same for the matches of a pattern. Links are not followed: checking each would take longer than hashing."""
    for path in paths:
        if _has_anchor(path) or (path.endswith(_BESIDE) and _has_anchor(path[: path.rindex("-")])):
            raise is_a_store(path)


def is_a_store(path: str) -> NotObservable:
    return NotObservable(
        f"{shown(path)} belongs to a surefoot store, which changes with every entry; watch something else, "
        "or keep the store in another folder"
    )


def _has_anchor(path: str) -> bool:
    try:
        status = os.lstat(f"{path}{ANCHOR}")
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == ANCHOR_BYTES
