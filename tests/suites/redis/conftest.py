"""A server of each kind for the session; a store of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from surefoot.engine.declare.registry import registry
from surefoot.store.channel import Waits
from surefoot.store.handle import _LIVE
from surefoot.store.open import close_all
from surefoot.store.redis.address import read_address
from surefoot.store.redis.store import RedisStore
from tests.redis import REDIS, VALKEY, Server, serving


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("valkey"), VALKEY) as running:
        yield running


@pytest.fixture(scope="session")
def redis6(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("redis6"), REDIS) as running:
        yield running


@pytest.fixture
def server(valkey: Server) -> Server:
    return valkey


@pytest.fixture
def url(server: Server) -> str:
    return server.fresh()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Anchors of a test are its own; and no store stays open behind it."""
    monkeypatch.chdir(tmp_path)
    yield
    close_all()
    for store in list(_LIVE):
        store.close()


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., RedisStore]]:
    """Opens stores, and closes them."""
    stores: list[RedisStore] = []

    def open_(where: str = url, *, create: bool = True, adopting: bool = False, **waits: float) -> RedisStore:
        stores.append(RedisStore.open(read_address(where), create=create, adopting=adopting, waits=Waits(**waits)))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@pytest.fixture
def store(valkey: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty store, which is also the default one. A lease that a test can wait out."""
    url = valkey.fresh(lease=3)
    monkeypatch.setenv("SUREFOOT_STORE", url)
    return url


@pytest.fixture(autouse=True)
def own_workflows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker drives what its process knows; other tests of this process have defined workflows of the same names."""
    module = request.function.__module__
    if module.startswith("tests.workers."):
        known = {
            name: {origin: each for origin, each in found.items() if origin.startswith(f"{module}:")}
            for name, found in registry._known.items()
        }
        monkeypatch.setattr(registry, "_known", {name: found for name, found in known.items() if found})
