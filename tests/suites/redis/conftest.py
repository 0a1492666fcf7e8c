"""A server of each kind for the session; a store of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from surefoot.store.channel import Waits
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
    """Anchors of a test are its own."""
    monkeypatch.chdir(tmp_path)
    yield
    close_all()


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
