"""A store in a SQLite file, before it is open.

A process must not open such a file twice beside SQLite, so there is one store object per real path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import unquote

from surefoot.errors import UsageError
from surefoot.store.backend import FORMS, Announce, Backend, Backup, Verify, Watch
from surefoot.store.contract import Store
from surefoot.store.findings import Finding


class SqliteBackend(Backend):
    schemes = ("sqlite",)

    def place(self, url: str) -> str:
        return self.file(url)

    def open(self, url: str, *, create: bool, announce: Announce | None) -> Store:
        # Not at the top: a program that only uses a store in memory need not load SQLite.
        from surefoot.store.sqlite.store import SqliteStore

        return SqliteStore.open(self.file(url), create=create, url=url, announce=announce)

    def address(self, store: Store) -> str:
        return f"sqlite:///{store.file}"

    def open_regressed(self, url: str) -> Store:
        from surefoot.store.sqlite.store import SqliteStore

        return SqliteStore.open(self.file(url), create=False, url=url, adopting=True)

    def file(self, url: str) -> str:
        return os.path.realpath(_path(url))

    def rebuild(self, file: str, *, accept_incomplete: bool = False) -> str:
        from surefoot.store.sqlite import salvage

        return salvage.rebuild(file, accept_incomplete=accept_incomplete).summary()

    def back_up(self, store: Store, path: str, *, verify: Verify, now: datetime, watch: Watch | None = None) -> Backup:
        from surefoot.store.sqlite import backup

        return backup.back_up(store, path, verify=verify, now=now, watch=watch)

    def before_opening(self, url: str) -> list[Finding]:
        from surefoot.store.sqlite import probe

        return probe.before_opening(self.file(url))

    def examine(self, url: str, store: Store | None, *, now: int) -> Iterator[Finding]:
        from surefoot.store.sqlite import probe

        return probe.examine(self.file(url), store, now=now)


def _path(url: str) -> str:
    """`///name` is relative to the working folder, `////name` absolute; `%20` is a space, as in any URL."""
    rest = url.partition(":")[2]
    if not rest.startswith("///"):
        raise UsageError(f"{url!r} is not a store URL: after sqlite: come three slashes and a path ({FORMS}).")
    if "?" in rest:
        raise UsageError(f"{url!r}: a SQLite store takes no options. A question mark in a file's name is written %3F.")
    path = unquote(rest[3:])
    if path in ("", ":memory:"):
        raise UsageError(f"{url!r} names no file. For a store in memory write memory:, else {FORMS}.")
    if "\0" in path or path.endswith("/"):
        raise UsageError(f"{url!r} does not name a file. Write {FORMS}.")
    return path
