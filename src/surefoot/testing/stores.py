"""A store for one test, which can be damaged between two processes that use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from surefoot.engine.process.config import overridden
from surefoot.store.open import close_all
from surefoot.testing.damaging import damage


class TestedStore:
    """The store for the runs of a test."""

    __test__ = False  # for pytest: this is no test

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{quote(str(path))}"

    def reopen(self) -> None:
        """Open the store as a new process would: everything is read from disk again."""
        close_all()

    def damage(self, how: str, seed: str = "") -> str:
        """`truncate`, `flip`, `zero` or `older`. Returns what was done, in words; another seed, another place."""
        close_all()
        return damage(self.path, how, seed)


@contextmanager
def configured(path: Path) -> Iterator[TestedStore]:
    """Inside this block, runs that name no store are kept there."""
    store = TestedStore(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with overridden(store=store.url):
        try:
            yield store
        finally:
            close_all()
