"""The store in Redis keeps the contract: the shipped suite, on Valkey 8 and on Redis 6.2."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.store.contract import Store
from surefoot.store.redis.address import read_address
from surefoot.store.redis.store import RedisStore
from surefoot.testing.conformance import StoreContract
from tests.redis import Server


class TestValkey(StoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, valkey: Server) -> None:
        self.server = valkey

    def make_store(self, tmp_path: Path) -> Store:
        return RedisStore.open(read_address(self.server.fresh()), create=True)


class TestRedis(StoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, redis6: Server) -> None:
        self.server = redis6

    def make_store(self, tmp_path: Path) -> Store:
        return RedisStore.open(read_address(self.server.fresh()), create=True)
