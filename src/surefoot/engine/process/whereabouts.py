"""Which store an error is about, for the commands that help.

Errors about stored bytes are raised in low layers, where only a record or a file is known. Code that reads a store for
others names that store here, once. Callers further up may work on another store: they do not change the name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

from surefoot.errors import Stopped
from surefoot.store.contract import Journals

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Journals)


@contextmanager
def at(where: str) -> Iterator[None]:
    """Stops inside this block are about the store at this URL."""
    try:
        yield
    except Stopped as error:
        error.name_store(where)
        raise


def in_its_store(read: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """For functions that work on the store they are given."""

    @functools.wraps(read)
    def reading(store: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with at(store.url):
            return read(store, *args, **kwargs)

    return reading
