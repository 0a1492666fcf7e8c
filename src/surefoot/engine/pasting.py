"""Commands that work when pasted: a cure names its store wherever that is not the default one.

Errors about stored bytes are raised deep down, where only a record or a file is known. Whoever reads a store for others
says here once which one it is; whoever is further up, perhaps working in another store, leaves that alone.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, Final, ParamSpec, TypeVar

from surefoot.errors import Stopped
from surefoot.store.contract import Journals

DEFAULT_STORE: Final = "sqlite:///.surefoot/runs.db"
_BY_PATH: Final = "surefoot inspect "
"""It names a file, and needs no store."""

Cures = tuple[tuple[str, str], ...]
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Journals)


def pasteable(cures: Cures, where: str) -> Cures:
    if where == DEFAULT_STORE:
        return cures
    extra = f" --store {shlex.quote(where)}"
    return tuple((when, line + extra if _needs_store(line) else line) for when, line in cures)


def _needs_store(line: str) -> bool:
    return line.startswith("surefoot ") and not line.startswith(_BY_PATH) and " --store " not in line


def name_store(error: Stopped, where: str) -> None:
    """Unless somebody nearer to it has said where it is."""
    if not error.store:
        error.store, error.cures = where, pasteable(error.cures, where)


@contextmanager
def at(where: str) -> Iterator[None]:
    """What stops here is about the store at this URL."""
    try:
        yield
    except Stopped as error:
        name_store(error, where)
        raise


def in_its_store(read: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """For functions that work on the store they are given."""

    @functools.wraps(read)
    def reading(store: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return read(store, *args, **kwargs)
        except Stopped as error:
            name_store(error, store.url)
            raise

    return reading
