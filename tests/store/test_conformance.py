"""Both stores keep the contract: the shipped suite, run on each."""

from __future__ import annotations

from pathlib import Path

from surefoot.store.contract import Store
from surefoot.store.memory import MemoryStore
from surefoot.store.sqlite.store import SqliteStore
from surefoot.testing.conformance import StoreContract


class TestMemory(StoreContract):
    def make_store(self, tmp_path: Path) -> Store:
        return MemoryStore()


class TestSqlite(StoreContract):
    def make_store(self, tmp_path: Path) -> Store:
        path = tmp_path / "runs.db"
        return SqliteStore.open(str(path), create=True, url=f"sqlite:///{path}")
