"""A flipped bit anywhere in a store's files is noticed, or harmless: never other records, fewer, or none in silence."""

from __future__ import annotations

import random
import shutil

import pytest

from surefoot.core.seal import Sealer, verify
from surefoot.errors import Damaged, SchemaMismatch, StoreUnavailable, UsageError
from surefoot.store.contract import RunQuery
from surefoot.store.sqlite import SqliteStore
from surefoot.testing.conformance import Writer, index_row

RUNS = ("first", "second", "third")
FLIPS_PER_FILE = 150
TYPED = (Damaged, SchemaMismatch, StoreUnavailable, UsageError)


def read_whole(path):
    """What a careful reader gets: per run its records, if chain and head hold, else the word that was said."""
    try:
        store = SqliteStore.open(str(path), create=False, url="x")
    except TYPED as error:
        return type(error).__name__
    try:
        return {run: read_run(store, run) for run in RUNS}
    finally:
        store.close()


def read_run(store, run):
    try:
        stored = store.read(run)
    except TYPED as error:
        return type(error).__name__
    last = stored.records[-1] if stored.records else None
    whole = verify(Sealer(store.id, run), stored.records) == len(stored.records)
    if not whole or last is None or stored.head is None or (last.seq, last.seal) != (stored.head.seq, stored.head.seal):
        return "not whole"
    return stored.records


def list_runs(path):
    """The run list of a store that opens: rows are right or None."""
    try:
        store = SqliteStore.open(str(path), create=False, url="x")
    except TYPED:
        return None
    try:
        return store.runs(RunQuery())
    except TYPED:
        return None
    finally:
        store.close()


def fill(place):
    """Three runs, part of them in the database and part still in the log."""
    place.fill(*RUNS, count=6)
    store = place.open()
    writers = [Writer(store, run, head=store.read(run).head) for run in RUNS]
    for n in range(4):
        for writer in writers:
            store.append([writer.append(b'{"later":%d}' % n, row=index_row(writer.run))])
    return store


@pytest.fixture
def original(place, tmp_path):
    """As after a kill: the newest records are in the log."""
    fill(place)
    return place.copy_to(tmp_path / "original")


@pytest.fixture
def closed(place, tmp_path):
    """After a clean close, without the log: nothing but the database itself can answer."""
    fill(place).close()
    place.wal.unlink()
    return place.copy_to(tmp_path / "original")


@pytest.mark.parametrize("suffix", ["", "-wal", "-anchor"])
def test_flipped_bit_is_noticed_or_harmless(original, tmp_path, suffix):
    """Sampled over each file, some records still in the log; the same seed finds the same flips."""
    flip_and_read(original, tmp_path, suffix)


def test_flipped_bit_of_a_closed_database_is_noticed_or_harmless(closed, tmp_path):
    """The database alone, where no log lies over its pages."""
    flip_and_read(closed, tmp_path, "")


def flip_and_read(original, tmp_path, suffix):
    expected = read_whole(original.path)
    listed = list_runs(original.path)
    assert [len(expected[run]) for run in RUNS] == [10, 10, 10]
    chance = random.Random(suffix)
    files = {file.name: file.read_bytes() for file in original.path.parent.iterdir() if file.is_file()}
    outcomes = {"same": 0, "said": 0}
    target = tmp_path / "flipped"
    for _ in range(FLIPS_PER_FILE):
        bit = chance.randrange(len(files["runs.db" + suffix]) * 8)
        found, found_list = flipped(target, files, "runs.db" + suffix, bit)

        if isinstance(found, str):
            outcomes["said"] += 1
            continue
        for run in RUNS:
            assert isinstance(found[run], str) or found[run] == expected[run], f"bit {bit} of runs.db{suffix}"
        outcomes["same" if found == expected else "said"] += 1
        if found_list is not None and found == expected:
            assert {item.run for item in found_list} == set(RUNS)
            assert all(item.row is None or item in listed for item in found_list)

    assert sum(outcomes.values()) == FLIPS_PER_FILE
    assert outcomes["said"] > 0 or suffix == "-anchor", outcomes


def flipped(target, files, name, bit):
    """Read a copy with one bit changed."""
    target.mkdir()
    for other, content in files.items():
        (target / other).write_bytes(content)
    bad = bytearray(files[name])
    bad[bit // 8] ^= 1 << bit % 8
    (target / name).write_bytes(bad)
    try:
        return read_whole(target / "runs.db"), list_runs(target / "runs.db")
    finally:
        shutil.rmtree(target)


def test_run_is_never_listed_under_another_name(closed):
    """The name stands in several places; where one of them changed, the list says so or is still right."""
    whole = closed.path.read_bytes()
    places = [at for at in range(len(whole)) if whole.startswith(b"first", at)]
    assert len(places) > 3
    lists = []
    for at in places:
        closed.path.write_bytes(whole[:at] + b"farst" + whole[at + 5 :])
        lists.append(list_runs(closed.path))

    assert all(listed is None or {item.run for item in listed} == set(RUNS) for listed in lists)
    assert None in lists


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_truncated_file_is_noticed(original, tmp_path, suffix):
    """A copy that broke off: at sampled lengths, down to nothing."""
    expected = read_whole(original.path)
    files = {file.name: file.read_bytes() for file in original.path.parent.iterdir() if file.is_file()}
    whole = files["runs.db" + suffix]
    chance = random.Random(suffix)
    for length in [0, 1, 100, *(chance.randrange(len(whole)) for _ in range(25))]:
        folder = tmp_path / "cut"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content[:length] if name == "runs.db" + suffix else content)
        found = read_whole(folder / "runs.db")
        shutil.rmtree(folder)

        if not isinstance(found, str):
            assert all(isinstance(found[run], str) or found[run] == expected[run] for run in RUNS), length


@pytest.mark.parametrize("state", ["original", "closed"])
def test_zeroed_block_is_noticed_or_harmless(request, tmp_path, state):
    """A block that never reached the disk."""
    original = request.getfixturevalue(state)
    expected = read_whole(original.path)
    files = {file.name: file.read_bytes() for file in original.path.parent.iterdir() if file.is_file()}
    for name in files.keys() & {"runs.db", "runs.db-wal"}:
        for start in range(0, len(files[name]), 4096):
            folder = tmp_path / "zeroed"
            folder.mkdir()
            bad = {**files, name: files[name][:start] + bytes(4096) + files[name][start + 4096 :]}
            for other, content in bad.items():
                (folder / other).write_bytes(content)
            found = read_whole(folder / "runs.db")
            shutil.rmtree(folder)

            if not isinstance(found, str):
                assert all(isinstance(found[run], str) or found[run] == expected[run] for run in RUNS), (name, start)
