"""A database with damaged pages is built anew from what can be read; no run vanishes, and nothing is made up."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from surefoot.core.parts import cut
from surefoot.core.seal import Sealer, verify
from surefoot.errors import JournalCorrupt, SchemaMismatch, StoreUnavailable, SurefootError, UsageError
from surefoot.store.contract import RESERVED, Head, RunQuery
from surefoot.store.liveness import Liveness
from surefoot.store.salvage import LOST_HEAD, rebuild
from surefoot.store.sqlite import SqliteStore
from surefoot.testing.conformance import Writer, assert_whole, index_row

RUNS = ("first", "second", "third")
LENGTHS = {"first": 12, "second": 60, "third": 12}
PAGE = 4096


def fill(place):
    """Three runs, one of 60 entries, with values by parts; the last entries are still in the log."""
    chance = random.Random(7)
    store = place.open()
    writers = {run: Writer(store, run) for run in RUNS}
    for n in range(60):
        for run in RUNS:
            if n < LENGTHS[run]:
                body = b'{"n":%d,"pad":"%s"}' % (n, b"x" * chance.randrange(300))
                item = writers[run].append(body, row=index_row(run, seq=n + 1) if n in (0, 5) else None)
                values = [cut(chance.randbytes(3000).hex().encode())] if n % 5 == 0 else []
                store.append([type(item)(item.run, item.head, item.records, item.row, values)])
    return store


@pytest.fixture
def closed(place, tmp_path):
    """After a clean close: nothing but the database itself can answer."""
    fill(place).close()
    return place.copy_to(tmp_path / "original")


@pytest.fixture
def killed(place, tmp_path):
    """As after a kill: the newest records are in the log."""
    fill(place)
    return place.copy_to(tmp_path / "original")


@pytest.fixture
def damaged(closed, tmp_path):
    """Copies of the store with other bytes in places."""

    def make(*places: tuple[int, bytes], name: str = "runs.db", whole=closed):
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole.path.parent, folder)
        with open(folder / name, "r+b") as file:
            for offset, data in places:
                file.seek(offset)
                file.write(data)
        return folder / "runs.db"

    return make


def contents(path):
    store = SqliteStore.open(str(path), create=False, url="x")
    try:
        return {run: store.read(run).records for run in RUNS}, {n: p.body for n, p in store.parts(store.part_ids()).items()}
    finally:
        store.close()


def check_rebuilt(path, records, parts):
    """What was built anew opens, has every run, and nothing but what was written."""
    store = SqliteStore.open(str(path), create=True, url="x")
    try:
        assert {name for name in store.names() if not name.startswith(RESERVED)} == set(RUNS)
        assert {item.run for item in store.runs(RunQuery())} == set(RUNS)
        left = 0
        for run in RUNS:
            stored = store.read(run)
            sound = [record for record in stored.records if record in records[run]]
            # Bytes that changed inside a record are taken over as they are, and its seal says so.
            assert verify(Sealer(store.id, run), stored.records) <= len(sound)
            assert len({record.seq for record in stored.records}) == len(stored.records)
            assert stored.head is not None
            last = records[run][-1]
            assert stored.head in (Head(last.seq, last.seal), Head(0, LOST_HEAD)) or not stored.records
            left += len(sound)
        found = store.parts(store.part_ids())
        same = sum(1 for name, part in found.items() if parts.get(name) == part.body)
        fresh = Writer(store, "fresh")
        assert store.append([fresh.append(b"{}")]) == [None], "positions went back"
        assert store.runs(RunQuery(limit=1))[0].run == "fresh"
        return left, same
    finally:
        store.close()


def sweep(damaged, whole, blocks, name="runs.db"):
    records, parts = contents(whole.path)
    tally = {"refused": 0, "rebuilt": 0, "whole": 0, "left": 0, "parts": 0}
    for offset, data in blocks:
        path = damaged((offset, data), name=name, whole=whole)
        before = path.read_bytes()
        try:
            found = rebuild(str(path))
        except (JournalCorrupt, UsageError, SchemaMismatch) as error:
            assert str(path) in str(error)
            tally["refused"] += 1
            assert path.read_bytes() == before
            assert not list(path.parent.glob("*-salvage*"))
            continue
        left, same = check_rebuilt(path, records, parts)
        assert found.complete
        if "-wal" not in "".join(found.evidence):
            assert Path(found.evidence[0]).read_bytes() == before
        tally["rebuilt"] += 1
        tally["whole"] += left == sum(LENGTHS.values()) and same == len(parts)
        tally["left"] += left
        tally["parts"] += same
    return tally


def blocks(size, length, *, seed, count):
    """Zeroes and garbage, in every block or in a sample."""
    chance = random.Random(seed)
    offsets = range(0, size, length)
    for offset in offsets if len(offsets) <= count else sorted(chance.sample(offsets, count)):
        yield offset, bytes(length) if chance.random() < 0.5 else chance.randbytes(length)


def test_any_damaged_page_leaves_every_run_and_nothing_new(damaged, closed):
    """Each page in turn, zeroed or garbage."""
    tally = sweep(damaged, closed, blocks(closed.path.stat().st_size, PAGE, seed=1, count=200))

    print(tally)


def test_any_damaged_sector_leaves_every_run_and_nothing_new(damaged, closed):
    tally = sweep(damaged, closed, blocks(closed.path.stat().st_size, 512, seed=2, count=2000))
    print(tally)


def test_damaged_log_leaves_every_run_and_nothing_new(damaged, killed):
    tally = sweep(damaged, killed, blocks(killed.wal.stat().st_size, 512, seed=2, count=200), name="runs.db-wal")
    print(tally)
    tally = sweep(damaged, killed, blocks(killed.path.stat().st_size, 512, seed=2, count=200))
    print(tally)
