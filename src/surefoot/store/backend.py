"""A kind of store, before a store is open: a row of the table in `open.py`.

Every question here is asked with a URL, or with the file of a store. Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from surefoot.errors import UsageError
from surefoot.store.contract import Store

if TYPE_CHECKING:
    from surefoot.store.findings import Finding

FORMS: Final = (
    "sqlite:///relative.db, sqlite:////absolute.db, postgresql://user@host/database, redis://host:6379/0 or memory:"
)

Announce = Callable[[str], object]
Watch = Callable[[int, int], object]
"""Called with how many pages are copied, of how many."""
Verify = Callable[[Store], str]
"""Checks the copy as a store; returns what is wrong, or nothing."""


class Backup(Struct, frozen=True):
    """A verified copy."""

    path: str
    bytes: int
    records: int
    """The last record of the store in the copy."""
    removed: list[str]
    """Older copies that were deleted."""


class Backend:
    """One kind of store. Verbs that only stores in a file have are refused here."""

    schemes: tuple[str, ...]
    durable = True
    """Whether acknowledged records outlive the process."""
    instead = ""
    """The advice for verbs that only stores in a file have."""

    def place(self, url: str) -> str:
        """A key: the same for two URLs of the same store. `UsageError`, if the URL is none."""
        raise NotImplementedError

    def open(self, url: str, *, create: bool, announce: Announce | None) -> Store:
        raise NotImplementedError

    def open_regressed(self, url: str) -> Store:
        """Open a store that is refused because it is older than it once was, so that it can be adopted."""
        raise self.no_file(url)

    def shown(self, url: str) -> str:
        """The URL as people may see it: without its password."""
        return url

    def address(self, store: Store) -> str:
        """The URL of an open store, for people in any folder."""
        return store.url

    def file(self, url: str) -> str:
        """The file that holds the store."""
        raise self.no_file(url)

    def rebuild(self, file: str, *, accept_incomplete: bool = False) -> str:
        """Rebuild a database with damaged pages from all that can be read. Returns what was done, in words."""
        raise self.no_file(file)

    def back_up(self, store: Store, path: str, *, verify: Verify, now: datetime, watch: Watch | None = None) -> Backup:
        """Copy an open store into a folder (named by time, the newest three are kept) or to a new file."""
        raise self.no_file(store.url)

    def before_opening(self, url: str) -> list[Finding]:
        """Findings that have to be made before opening the store repairs their cause."""
        return []

    def examine(self, url: str, store: Store | None, *, now: int) -> Iterator[Finding]:
        """All findings about the place of a store. `store` is None if it could not be opened."""
        raise NotImplementedError

    def no_file(self, url: str) -> UsageError:
        """The error for a verb that only stores in a file have."""
        return UsageError(f"{self.shown(url)!r}: this is for stores in a SQLite file.{self.instead or f' ({FORMS})'}")
