"""From a store's URL to the store, the same object for the same place.

In a process that has a SQLite file open nothing may open it again beside SQLite, so there is one store object
per real path, and one per PostgreSQL database. One that was closed, given up after a failure or inherited by a
forked child is replaced by a fresh one, which looks anew.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote

from surefoot.core.urls import Url, parse
from surefoot.errors import UsageError
from surefoot.store.contract import Rewrite, Store
from surefoot.store.memory import MemoryStore

if TYPE_CHECKING:
    from surefoot.store.postgres.store import PostgresStore
    from surefoot.store.sqlite import SqliteStore

    Opened = MemoryStore | SqliteStore | PostgresStore

FORMS: Final = "sqlite:///relative.db, sqlite:////absolute.db, postgresql://user@host/database or memory:"

POSTGRES: Final = ("postgresql", "postgres")

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_USER: Final = re.compile(r"//[^/]*@")
"""Whatever it is, a password may be in it."""

_stores: Final[dict[str, Opened]] = {}
_known: Final[dict[tuple[str, str], Opened]] = {}
"""What a URL meant in a working folder, so that the thousandth run does not ask the file system again."""
_opening = threading.RLock()


def open_store(url: str, *, create: bool, announce: Callable[[str], object] | None = None) -> Store:
    """The store at this URL. With `create`, a missing one is made, and `announce` is told; else `NotFound`."""
    place = (url, os.getcwd())
    known = _known.get(place)
    if known is not None and known.usable:
        return known
    store = _open(url, create=create, announce=announce)
    _known[place] = store
    return store


def _open(url: str, *, create: bool, announce: Callable[[str], object] | None) -> Opened:
    found = _SCHEME.match(url)
    scheme = found.group(1).lower() if found else ""
    rest = url[len(scheme) + 1 :]
    if scheme == "memory":
        return _memory(rest, url)
    if scheme == "sqlite":
        return _sqlite(_sqlite_path(rest, url), url, create=create, announce=announce)
    if is_postgres(url):
        return _postgres(parse(url, POSTGRES), create=create, announce=announce)
    raise _unknown(scheme, url)


def is_postgres(url: str) -> bool:
    """As in SQLAlchemy, the driver may be named: `postgresql+psycopg:`."""
    return url.partition(":")[0].partition("+")[0].lower() in POSTGRES


def shown(url: str) -> str:
    """The URL as people may see it: without its password."""
    return parse(url, POSTGRES).shown if is_postgres(url) else url


def path_of(url: str) -> str:
    """The database file of a SQLite store."""
    if not url.lower().startswith("sqlite:"):
        raise no_file(url)
    return os.path.realpath(_sqlite_path(url[len("sqlite:") :], url))


def no_file(url: str) -> UsageError:
    """What is for stores in a file was asked of another one."""
    instead = (
        " In PostgreSQL, copies are made with pg_dump or a base backup, damage is found with pg_amcheck, and a restored "
        "copy is accepted with surefoot adopt."
    )
    more = instead if is_postgres(url) else f" ({FORMS})"
    return UsageError(f"{shown(url)!r}: this is for stores in a SQLite file.{more}")


class Regressed(Store, Protocol):
    """A store that is older than it once was, and can be made whole again."""

    @property
    def expected(self) -> int | None:
        """Up to which record the store is known to have reached."""

    def rewrite_together(self, items: Sequence[Rewrite]) -> bool:
        """All of them in one transaction, or none: False if a journal is not as it was found."""


def open_regressed(url: str) -> Regressed:
    """A store that is refused because it is older than it once was, opened all the same, to be adopted."""
    if is_postgres(url):
        from surefoot.store.postgres.store import PostgresStore

        return PostgresStore.open_regressed(parse(url, POSTGRES))
    from surefoot.store.sqlite import SqliteStore

    return SqliteStore.open_regressed(path_of(url), url=url)


def close_all() -> None:
    """Close every store this process has open."""
    with _opening:
        stores = list(_stores.values())
        _stores.clear()
        _known.clear()
    for store in stores:
        store.close()


def _memory(name: str, url: str) -> Opened:
    if name.startswith("/"):
        raise UsageError(f"{url!r}: a store in memory has no path. Write memory: or memory:name.")
    key = f"memory:{name}"
    with _opening:
        store = _stores.get(key)
        if store is None or not store.usable:
            store = _stores[key] = MemoryStore(key)
        return store


def _postgres(url: Url, *, create: bool, announce: Callable[[str], object] | None) -> Opened:
    from surefoot.store.postgres.store import PostgresStore

    with _opening:
        store = _stores.get(url.given)
        if store is None or not store.usable:
            _stores.pop(url.given, None)
            store = _stores[url.given] = PostgresStore.open(url, create=create, announce=announce)
        return store


def _sqlite(path: str, url: str, *, create: bool, announce: Callable[[str], object] | None) -> Opened:
    # Here and not above: a program that only uses memory need not load SQLite.
    from surefoot.store.sqlite import SqliteStore

    key = os.path.realpath(path)
    with _opening:
        store = _stores.get(key)
        if store is None or not store.usable:
            _stores.pop(key, None)
            store = _stores[key] = SqliteStore.open(key, create=create, url=url, announce=announce)
        return store


def _sqlite_path(rest: str, url: str) -> str:
    """`///name` is relative to the working folder, `////name` absolute; `%20` is a space, as in any URL."""
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


def _unknown(scheme: str, url: str) -> UsageError:
    if scheme == "file":
        return UsageError(f"{url!r} can hold checkpoints, not runs. Use {FORMS}.")
    url = _USER.sub("//***@", url)
    hint = "" if scheme else f" Did you mean sqlite:///{url}?"
    return UsageError(f"{url!r} is not a store URL.{hint} The forms are {FORMS}.")


def _in_child() -> None:
    global _opening  # noqa: PLW0603 - a thread that does not exist in the child may have held the old one
    _opening = threading.RLock()


os.register_at_fork(after_in_child=_in_child)
atexit.register(close_all)
