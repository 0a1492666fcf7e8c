"""From URL to store: the same object for the same place, and clear words for everything else."""

from __future__ import annotations

import os
import threading

import pytest

from surefoot.errors import NotFound, StoreUnavailable, UsageError
from surefoot.store.open import close_all, open_store
from surefoot.testing.conformance import Writer, assert_whole


@pytest.fixture(autouse=True)
def nothing_left_open():
    yield
    close_all()


def test_three_slashes_are_relative_and_four_absolute(tmp_path, monkeypatch):
    """As in SQLAlchemy."""
    monkeypatch.chdir(tmp_path)

    relative = open_store("sqlite:///folder/runs.db", create=True)

    assert (tmp_path / "folder" / "runs.db").exists()
    assert open_store(f"sqlite:///{tmp_path}/folder/runs.db", create=False) is relative


def test_place_is_kept_when_the_working_folder_changes(tmp_path, monkeypatch):
    """A workflow may change the folder; its journal must not move."""
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///runs.db", create=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    assert store.append([Writer(store, "r").append(b"1")]) == [None]

    assert os.listdir() == []


def test_same_place_by_another_name_is_the_same_store(tmp_path):
    """Nothing may open the file twice in one process."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = open_store(f"sqlite:///{tmp_path}/real/runs.db", create=True)

    assert open_store(f"sqlite:///{tmp_path}/link/../link/runs.db", create=True) is store


def test_threads_that_open_at_once_get_one_store(tmp_path):
    """The first use is often from several threads."""
    found = []
    start = threading.Barrier(6)

    def work():
        start.wait()
        found.append(open_store(f"sqlite:///{tmp_path}/runs.db", create=True))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 6
    assert len(set(map(id, found))) == 1


def test_closed_store_is_opened_afresh(tmp_path):
    """`close` really closes; the next one looks at the disk."""
    url = f"sqlite:///{tmp_path}/runs.db"
    first = open_store(url, create=True)
    first.append([Writer(first, "r").append(b"1")])
    first.close()

    second = open_store(url, create=False)

    assert second is not first
    assert_whole(second, "r", 1)


def test_close_all_closes_all(tmp_path):
    """At the end of a program, or of a test."""
    stores = [open_store(url, create=True) for url in (f"sqlite:///{tmp_path}/runs.db", "memory:", "memory:a")]

    close_all()

    for store in stores:
        with pytest.raises(StoreUnavailable):
            store.changes()


def test_percent_signs_are_decoded(tmp_path):
    """`%20` is a space, as in any URL; a percent sign that encodes nothing is itself."""
    open_store(f"sqlite:///{tmp_path}/a%20b%3F100%.db", create=True)

    assert (tmp_path / "a b?100%.db").exists()


def test_missing_store_is_named(tmp_path):
    """Reading verbs never make one."""
    with pytest.raises(NotFound, match=r"runs\.db"):
        open_store(f"sqlite:///{tmp_path}/runs.db", create=False)

    assert os.listdir(tmp_path) == []


def test_creation_is_announced_once(tmp_path):
    """To the person who may have mistyped the path."""
    said = []
    for _ in range(2):
        open_store(f"sqlite:///{tmp_path}/runs.db", create=True, announce=said.append)

    assert said == [f"created store {tmp_path}/runs.db"]


def test_memory_stores_are_shared_by_name():
    """Two parts of one program mean the same store."""
    assert open_store("memory:", create=True) is open_store("memory:", create=False)
    assert open_store("memory:a", create=True) is open_store("memory:a", create=True)
    assert open_store("memory:a", create=True) is not open_store("memory:", create=True)


def test_memory_store_says_that_it_is_not_durable():
    """So that the engine can warn."""
    assert open_store("memory:", create=True).durability()["durable"].startswith("no")


@pytest.mark.parametrize(
    "url",
    [
        "runs.db", "/abs/runs.db", "", "sqlite", "sqlite:", "sqlite:runs.db", "sqlite:/runs.db", "sqlite://runs.db",
        "sqlite://host/runs.db", "sqlite:///", "sqlite:///:memory:", "sqlite:///runs.db?mode=ro", "sqlite:///folder/",
        "sqlite:///a%00b", "mongodb://x", "memory://x", "file:///dir", "C:\\runs.db", "mysql://x",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_the_forms(url, tmp_path):
    """A wrong URL must not become a file with a strange name."""
    with pytest.raises(UsageError, match=r"sqlite:///|memory:|%3F"):
        open_store(url, create=True)

    assert os.listdir(tmp_path) == []


@pytest.mark.processes
def test_forked_child_does_not_get_the_parents_memory():
    """A copy that goes its own way would look like the store and silently not be it."""
    store = open_store("memory:", create=True)
    pid = os.fork()
    if pid == 0:
        try:
            store.changes()
        except StoreUnavailable as error:
            os._exit(0 if "another process" in str(error) and open_store("memory:", create=True) is not store else 2)
        os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert store.changes() == 0
