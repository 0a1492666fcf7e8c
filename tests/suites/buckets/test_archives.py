"""Pruned runs in a bucket: there before they are deleted, and back record for record."""

from __future__ import annotations

import gzip
from urllib.parse import unquote, urlsplit

import pytest

import surefoot as sf
from surefoot.cli.main import main
from surefoot.engine.process import config
from surefoot.engine.upkeep.archives import Archive, restore
from surefoot.engine.upkeep.tombstones import bury, candidates
from surefoot.engine.upkeep.verification import verify_store
from surefoot.store.bucket import Bucket, object_at, open_bucket, place

STORE = "sqlite:///runs.db"


@sf.step
def read(n: int) -> str:
    return f"{n} é " * 3000


@sf.workflow
def work(n: int) -> int:
    return sum(len(read(i)) for i in range(n))


@pytest.fixture
def filled(tmp_path):
    """Runs of every length and name."""
    names = ["r-1", "tick 81/é", "…#?&%"]
    for number, name in enumerate(names):
        work.using(store=STORE).run(name, number)
    return names


def runtime():
    return config.runtime(STORE, create=False)


def stored():
    store = runtime().store
    return {name: store.read(name) for name in store.names()}


def prune(bucket, *more):
    return main(["prune", "--older-than", "0s", "--archive", bucket, "--store", STORE, "--yes", *more])


def test_archived_runs_come_back_record_for_record(bucket, filled, capsys):
    before = stored()

    assert prune(bucket) == 0
    with pytest.raises(sf.NotFound, match=r"surefoot restore r-1"):
        work.using(store=STORE).run("r-1", 0)
    assert main(["verify", "--store", STORE]) == 0
    for name in filled:
        assert main(["restore", name, "--store", STORE]) == 0

    assert stored() == before
    assert verify_store(runtime().store).flaws == []
    assert work.using(store=STORE).run("tick 81/é", 1) == len("0 é " * 3000)


def test_dry_run_writes_nothing(bucket, filled):
    assert main(["prune", "--older-than", "0s", "--archive", bucket, "--store", STORE]) == 0

    assert Bucket(place(bucket)).names() == []


def test_an_archive_is_one_put_and_one_get_a_run(bucket, filled, monkeypatch):
    one = open_bucket(bucket)
    asked = []

    class Counted:
        def __init__(self, store):
            self.store = store

        def __getattr__(self, name):
            asked.append(name)
            return getattr(self.store, name)

    one._store = Counted(one._store)
    found = runtime()
    (first, *_) = candidates(found.store, found.clock, older_than_seconds=0)
    Archive(one).keep(found.store, first)

    assert asked == ["put", "get"]


@pytest.mark.parametrize("point", ["before", "after"])
def test_killed_around_the_object_the_run_is_still_there(bucket, filled, point):
    """Never a tombstone without its object; what was written already is used the next time."""
    before, one = stored(), open_bucket(bucket)
    found = runtime()
    (first, *_) = candidates(found.store, found.clock, older_than_seconds=0)
    if point == "after":
        Archive(one).keep(found.store, first)

    assert stored() == before
    assert prune(bucket) == 0
    for name in filled:
        restore(runtime(), name)
    assert stored() == before


def test_changed_byte_is_damage_and_leaves_the_tombstone(bucket, filled):
    assert prune(bucket) == 0
    stone = config.runtime(STORE, create=False).store.read("r-1")
    at = sf.get_run("r-1", store=STORE).state().pruned.archive
    where, key = object_at(at)
    data = where.get(key).data
    where.delete(key)
    where.create(key, data[:40] + bytes([data[40] ^ 1]) + data[41:])

    assert main(["restore", "r-1", "--store", STORE]) == 4
    where.delete(key)
    assert main(["restore", "r-1", "--store", STORE]) == 2  # it is gone, and that is said

    assert runtime().store.read("r-1") == stone


def test_forged_object_in_the_place_is_refused_before_anything_is_deleted(bucket, filled):
    """Somebody wrote another run under the name that this one will get."""
    found, one = runtime(), open_bucket(bucket)
    first, second, *_ = candidates(found.store, found.clock, older_than_seconds=0)
    kept = Archive(one).keep(found.store, second)
    path = unquote(urlsplit(Archive(one).keep(found.store, first).url).path).strip("/")
    root = Bucket(place(bucket.partition("/shop")[0] + "?" + bucket.partition("?")[2]))
    root.delete(path)
    other = object_at(kept.url)
    root.create(path, other[0].get(other[1]).data)
    before = stored()

    assert prune(bucket) == 4

    assert stored()[first.run] == before[first.run]


def test_archived_run_of_a_store_that_moved_comes_back(bucket, filled):
    """Its tombstone went to another store; the object names the run's last seal at home."""
    before = stored()["r-1"].records
    assert prune(bucket) == 0
    assert main(["copy", "--from", STORE, "--to", "sqlite:///other.db", "--yes"]) == 0

    assert main(["restore", "r-1", "--store", "sqlite:///other.db"]) == 0

    there = config.runtime("sqlite:///other.db", create=False).store
    assert [one.body for one in there.read("r-1").records[: len(before)]] == [one.body for one in before]
    assert verify_store(there).flaws == []


def test_object_is_an_export_that_proves_itself(bucket, filled, tmp_path):
    """Without surefoot's store, in ten years."""
    assert prune(bucket) == 0
    where, key = object_at(sf.get_run("r-1", store=STORE).state().pruned.archive)
    (tmp_path / "r.jsonl").write_bytes(gzip.decompress(where.get(key).data))

    assert main(["export", "--check", "r.jsonl"]) == 0


def test_run_that_was_written_to_after_it_was_archived_stays(bucket, filled):
    found, one = runtime(), open_bucket(bucket)
    (first, *_) = candidates(found.store, found.clock, older_than_seconds=0)
    kept = Archive(one).keep(found.store, first)
    sf.get_run(first.run, store=STORE).rewind("read#1") if first.run != "r-1" else None
    before = stored()[first.run]

    refusal = bury(found.store, found.clock, first, archive=kept.url, sha256=kept.sha256)

    assert (refusal is None) == (first.run == "r-1")
    assert (stored()[first.run] == before) == (first.run != "r-1")
