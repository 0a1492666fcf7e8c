"""Cells: several databases behind one namespace, for more workers than one database has connections for.

A run is in the cell that its id gives, and stays there with its children. A worker serves one cell. The cells of a
process are in SUREFOOT_CELLS, as `NAME=URL NAME=URL`; the name is part of the task queue, as in `surefoot@north`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from surefoot.errors import UsageError
from surefoot.store.open import shown

VARIABLE: Final = "SUREFOOT_CELLS"


class Cell(Struct, frozen=True):
    name: str
    store: str
    """The URL, as given."""


def cell_of(run_id: str) -> Cell:
    """The cell of a new run: `refund.using(store=cell_of(run_id).store).start(run_id, …)`."""
    named = _cells(os.environ.get(VARIABLE, ""))
    if not named:
        raise UsageError(f"no cells are known: set {VARIABLE}='north=postgresql://… south=postgresql://…'")
    name = chosen(run_id, named)
    return Cell(name, named[name])


def chosen(run_id: str, names: Collection[str]) -> str:
    """The one with the highest number for that id: with one cell more, only the runs of that one are elsewhere."""
    return max(names, key=lambda name: hashlib.blake2b(f"{name}\0{run_id}".encode(), digest_size=8).digest())


def by_store() -> Mapping[str, str]:
    """The names of the cells, by the URL of the store without its password."""
    return _by_store(os.environ.get(VARIABLE, ""))


@cache
def _by_store(text: str) -> Mapping[str, str]:
    return {shown(store): name for name, store in _cells(text).items()}


@cache
def _cells(text: str) -> Mapping[str, str]:
    named: dict[str, str] = {}
    for word in text.split():
        name, equals, store = word.partition("=")
        if not (name and equals and store) or "@" in name or "/" in name or name in named:
            raise UsageError(f"{VARIABLE}: write NAME=URL NAME=URL, each name once, without @ and /.")
        named[name] = store
    return named
