"""Where runs live unless told otherwise: `sf.configure`, then SUREFOOT_STORE, then a file beside the work."""

from __future__ import annotations

import logging
import os
from typing import Final

from surefoot.engine.runtime import Runtime, runtime_of
from surefoot.store.open import open_store

DEFAULT_STORE: Final = "sqlite:///.surefoot/runs.db"
log = logging.getLogger("surefoot")


class Settings:
    def __init__(self) -> None:
        self.store: str | None = None
        self.namespace = ""
        self.loading = ""
        """The module that a command is importing to know its workflows. Looking at code starts no run."""


settings = Settings()
_warned: set[str] = set()


def configure(*, store: str | None = None, namespace: str | None = None) -> None:
    """Set the store and the namespace of this process. What is not given stays as it is.

    The namespace is part of every idempotency key: give each environment (test, live) its own.
    """
    if store is not None:
        settings.store = store
    if namespace is not None:
        settings.namespace = namespace


def store_url(given: str | None = None) -> str:
    return given or settings.store or os.environ.get("SUREFOOT_STORE") or DEFAULT_STORE


def runtime(url: str | None = None, *, create: bool) -> Runtime:
    """The open store. Only verbs that write may create one, and they say so."""
    where = store_url(url)
    if where.startswith("memory:") and where not in _warned:
        _warned.add(where)
        log.warning("store %s is not durable: its runs end with this process", where)
    return runtime_of(open_store(where, create=create, announce=log.warning))
