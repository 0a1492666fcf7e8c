"""Workers are tried on every store that several processes can share; PostgreSQL is a real one, started once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from surefoot.engine.declare.registry import registry
from surefoot.store.open import close_all
from tests.postgres import postgres

_databases = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store, which is also the default one."""
    monkeypatch.chdir(tmp_path)
    url = "sqlite:///runs.db" if request.param == "sqlite" else _database(request.getfixturevalue("server"))
    monkeypatch.setenv("SUREFOOT_STORE", url)
    yield url
    close_all()


@pytest.fixture(autouse=True)
def own_workflows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker drives what its process knows; other tests of this process have defined workflows of the same names."""
    module = request.module.__name__
    mine = {
        name: {origin: each for origin, each in found.items() if origin.startswith(f"{module}:")}
        for name, found in registry._known.items()
    }
    monkeypatch.setattr(registry, "_known", {name: found for name, found in mine.items() if found})


def _database(server: str) -> str:
    import psycopg

    name = f"sf{next(_databases)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.rpartition("/")[0] + "/" + name
