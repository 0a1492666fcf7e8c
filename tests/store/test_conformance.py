"""The stores keep the contract: the shipped suite, run on each, and on one that has only what it must have."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.engine.process import journal
from surefoot.errors import JournalCorrupt
from surefoot.store.contract import Head, Store, Stored
from surefoot.store.derived import Derived
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


class Sparse(SqliteStore):
    """With everything derived that can be: what a new backend has on its first day."""

    read_all = Derived.read_all
    scan_parts = Derived.scan_parts
    tally = Derived.tally
    lost_rows = Derived.lost_rows
    rewrite = Derived.rewrite


class TestDerived(StoreContract):
    def make_store(self, tmp_path: Path) -> Store:
        path = tmp_path / "runs.db"
        return Sparse.open(str(path), create=True, url=f"sqlite:///{path}")


def test_what_reads_journals_needs_no_more_than_journals():
    """The contract is split by caller, so that a stand-in for a test is a few lines."""

    class Double:
        id, url = bytes(16), "double:"

        def read(self, run, after=0, limit=None):
            return Stored([], Head(7, bytes(32)) if run == "lost" else None)

    assert journal.load(Double(), "unknown") is None
    with pytest.raises(JournalCorrupt, match="entry 1 of 7 is damaged: it is missing"):
        journal.load(Double(), "lost")
