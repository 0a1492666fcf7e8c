"""From a store's URL to the store, the same object for the same place.

The scheme of a URL selects the kind of store (the table below). No code outside `store/` asks for the kind. A
store that was closed, given up after a failure or inherited by a forked child is replaced by a fresh one.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from surefoot.errors import UsageError
from surefoot.store.backend import FORMS, Announce, Backend
from surefoot.store.contract import Store
from surefoot.store.memory import MemoryBackend
from surefoot.store.postgres.backend import PostgresBackend
from surefoot.store.redis.backend import RedisBackend
from surefoot.store.sqlite.backend import SqliteBackend

_BACKENDS: Final[dict[str, Backend]] = {
    scheme: backend
    for backend in (MemoryBackend(), SqliteBackend(), PostgresBackend(), RedisBackend())
    for scheme in backend.schemes
}

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_USER: Final = re.compile(r"//[^/]*@")
"""This part may contain a password."""

_stores: Final[dict[str, Store]] = {}
_known: Final[dict[tuple[str, str], Store]] = {}
"""Store by URL and working folder, so that later runs do not ask the file system again."""
_opening = threading.RLock()
_wrappers: Final[list[Callable[[Store], Store]]] = []


def backend_of(url: str) -> Backend:
    """The kind of store that the scheme of this URL names."""
    found = _SCHEME.match(url)
    scheme = found.group(1).lower() if found else ""
    backend = _BACKENDS.get(scheme.partition("+")[0])
    if backend is None:
        raise _unknown(scheme, url)
    return backend


def open_store(url: str, *, create: bool, announce: Announce | None = None) -> Store:
    """The store at this URL. With `create`, a missing one is made and announced; else `NotFound`."""
    place = (url, os.getcwd())
    known = _known.get(place)
    if known is not None and known.usable:
        return known
    backend = backend_of(url)
    key = backend.place(url)
    with _opening:
        store = _stores.get(key)
        if store is None or not store.usable:
            _stores.pop(key, None)
            store = backend.open(url, create=create, announce=announce)
            for wrap in _wrappers:
                store = wrap(store)
            _stores[key] = store
    _known[place] = store
    return store


@contextmanager
def wrapped(wrap: Callable[[Store], Store]) -> Iterator[None]:
    """Inside this block, every opened store is wrapped by this function: for tests that watch a store."""
    _wrappers.append(wrap)
    try:
        yield
    finally:
        _wrappers.remove(wrap)


def open_regressed(url: str) -> Store:
    """Open a store that is refused because it is older than it once was, so that it can be adopted."""
    return backend_of(url).open_regressed(url)


def shown(url: str) -> str:
    """The URL for people: without its password. Any text that is no store URL is shown unchanged."""
    backend = _BACKENDS.get(url.partition(":")[0].partition("+")[0].lower())
    return url if backend is None else backend.shown(url)


def address(store: Store) -> str:
    """The URL of an open store, for people in any folder: without a password, and with the whole path."""
    return backend_of(store.url).address(store)


def close_all() -> None:
    """Close every store this process has open."""
    with _opening:
        stores = list(_stores.values())
        _stores.clear()
        _known.clear()
    for store in stores:
        store.close()


def _unknown(scheme: str, url: str) -> UsageError:
    if scheme in ("file", "s3", "gs", "az"):
        return UsageError(f"{url!r} can hold checkpoints, not runs. Use {FORMS}.")
    url = _USER.sub("//***@", url)
    hint = "" if scheme else f" Did you mean sqlite:///{url}?"
    return UsageError(f"{url!r} is not a store URL.{hint} The forms are {FORMS}.")


def _in_child() -> None:
    global _opening  # noqa: PLW0603 - a thread that does not exist in the child may have held the old one
    _opening = threading.RLock()


os.register_at_fork(after_in_child=_in_child)
atexit.register(close_all)
