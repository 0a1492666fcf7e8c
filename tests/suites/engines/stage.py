"""An engine on a store, for this process and for those that it starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from surefoot.engine.process import engines
from surefoot.store.open import close_all
from tests import working

WAIT_SECONDS = 100.0
"""A bound for what hangs, on a machine that has other things to do."""


def wait_until(holds: Callable[[], object], seconds: float = WAIT_SECONDS) -> None:
    working.wait_until(holds, seconds)


ENGINES = ("embedded on SQLite", "embedded on PostgreSQL", "Temporal")


class Place(Struct, frozen=True):
    name: str
    store: str
    engine: str
    namespace: str = ""

    @property
    def env(self) -> dict[str, str]:
        return {"SUREFOOT_STORE": self.store, "SUREFOOT_ENGINE": self.engine}


def place_of(name: str, folder: Path, fixture: Callable[[str], Any], **options: str) -> Place:
    """An engine by its name, on a store of its own."""
    if name == "embedded on SQLite":
        return Place(name, f"sqlite:///{folder}/runs.db", "embedded:")
    store = fixture("database").database()
    if name == "embedded on PostgreSQL":
        return Place(name, store, "embedded:")
    cluster = fixture("cluster")
    namespace = cluster.namespace()
    return Place(name, store, cluster.url(namespace, **{"heartbeat": "2s", "sweep": "off", **options}), namespace)


@contextmanager
def at(where: Place) -> Iterator[Place]:
    """Inside of this, this process works there."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in where.env.items():
            patch.setenv(name, value)
        try:
            yield where
        finally:
            leave()


def leave() -> None:
    """What this process has opened is closed."""
    for engine in engines._opened.values():
        if hasattr(engine, "close"):
            engine.close()
    engines._opened.clear()
    close_all()


def found_env(**more: str) -> dict[str, str]:
    return {**os.environ, **more}
