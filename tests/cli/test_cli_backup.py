"""`surefoot backup`: a copy that was read back whole; older ones go only then; nothing is written over."""

from __future__ import annotations

import resource
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.engine.process import config
from surefoot.store.open import close_all
from surefoot.store.sqlite import backup

DB = Path(".surefoot/runs.db")


@sf.step
def note(text: str) -> str:
    return text


@sf.workflow
def more(text: str) -> str:
    return note(text)


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def at(second):
    return datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)


def back_up(path, second=0, verify=lambda _: ""):
    return backup.back_up(config.runtime(create=False).store, str(path), verify=verify, now=at(second))


def test_a_copy_opens_as_a_store_and_verifies(cli, runs):
    ended = cli("backup", "copy.db")

    assert ended.code == 0
    assert "verified" in ended.out
    url = "sqlite:///copy.db"
    assert cli("verify", "--store", url).out.startswith("whole: 5 runs, ")
    assert sf.get_run("done-1", store=url).result() == sf.get_run("done-1").result()
    assert stat.S_IMODE(Path("copy.db").stat().st_mode) == 0o600


def test_a_copy_has_no_leftovers(cli, runs):
    cli("backup", "copy.db")

    assert sorted(path.name for path in Path().glob("copy.db*")) == ["copy.db", "copy.db-anchor"]


def test_a_folder_keeps_the_newest_three(runs):
    """And only its own: another store's copies, and files that merely look alike, stay."""
    folder = Path("copies")
    folder.mkdir()
    (folder / "runs-20200101T000000Z.db").write_text("not ours")
    (folder / "notes.txt").write_text("keep")
    made = []
    for second in range(5):
        more.run(f"more-{second}", "x")
        made.append(back_up(folder, second))

    assert [len(one.removed) for one in made] == [0, 0, 0, 1, 1]
    kept = [f"runs-20260101T00000{second}Z.db" for second in (2, 3, 4)]
    expected = [*kept, *(f"{name}-anchor" for name in kept), "notes.txt", "runs-20200101T000000Z.db"]
    assert names(folder) == sorted(expected)


def test_the_newest_is_told_by_its_records_not_by_the_clock(runs):
    """A clock that was set back must not make the newest copy the first to go."""
    for second in (32, 31, 30):
        more.run(f"more-{second}", "x")
        back_up("copies/", second)
    more.run("last", "x")

    made = back_up("copies/", 1)

    assert [Path(old).name for old in made.removed] == ["runs-20260101T000032Z.db"]
    assert Path(made.path).exists()


def test_copies_of_another_store_are_not_counted_nor_deleted(runs):
    """Two projects may share a folder for their copies, and call their stores alike."""
    other = config.runtime("sqlite:///other/runs.db", create=True).store
    for second in range(4):
        backup.back_up(other, "copies/", verify=lambda _: "", now=at(second))
    for second in range(10, 14):
        back_up("copies/", second)

    assert [int(name[-6:-4]) for name in names("copies") if name.endswith(".db")] == [1, 2, 3, 11, 12, 13]


def test_a_copy_is_the_store_at_one_moment(runs, monkeypatch):
    """Pages of different moments would be a store that never was."""
    monkeypatch.setattr(backup, "_PAGES_PER_STEP", 1)
    store = config.runtime(create=False).store
    before = store.changes()

    def watch(done, total):
        if done == 3:
            more.run("meanwhile", "x" * 5000)

    made = backup.back_up(store, "copy.db", verify=lambda _: "", now=at(0), watch=watch)

    assert store.changes() > before
    assert made.records == before
    with pytest.raises(sf.NotFound):
        sf.get_run("meanwhile", store="sqlite:///copy.db")


def test_a_copy_that_is_not_whole_never_gets_a_name_and_nothing_older_goes(runs):
    """The one moment in which a backup tool must not be trusted is while it replaces the last good copy."""
    for second in range(3):
        back_up("copies/", second)
    before = names("copies")

    with pytest.raises(sf.JournalCorrupt, match="the copy is not whole"):
        back_up("copies/", 4, verify=lambda _: "entry 3 is damaged")

    assert names("copies") == before


def test_a_damaged_store_makes_no_backup(cli, runs):
    import sqlite3
    from contextlib import closing

    close_all()
    with closing(sqlite3.connect(DB)) as connection, connection:
        connection.execute("UPDATE entries SET at = at + 1 WHERE run = 'done-1' AND seq = 2")

    ended = cli("backup", "copies/")

    assert ended.code == 4
    assert "entry 2 of" in ended.err
    assert names("copies") == []


@pytest.mark.parametrize("target", ["there.txt", ".surefoot/runs.db", ".surefoot/runs.db-wal", ".surefoot/runs.db-x"])
def test_nothing_is_written_over(cli, runs, own_folder, target):
    """Neither the store itself nor a stranger's file."""
    (own_folder / "there.txt").write_text("a stranger's")

    ended = cli("backup", target)

    assert (ended.code, ended.out) == (2, "")
    assert (own_folder / "there.txt").read_text() == "a stranger's"
    assert cli("verify").code == 0


def test_a_side_file_of_something_else_is_not_taken_over(cli, runs, own_folder):
    """A stray -wal beside a new database would become part of it."""
    (own_folder / "copy.db-wal").write_text("a stranger's")

    assert cli("backup", "copy.db").code == 2


def test_what_a_cut_off_backup_left_is_cleared_away(runs):
    folder = Path("copies")
    folder.mkdir()
    (folder / "runs-20260101T000000Z.db.0011aabb.partial").write_text("half")
    (folder / "runs-20260101T000000Z.db.0011aabb.partial-anchor").write_text("half")
    (folder / "other.db.0011aabb.partial").write_text("another's")

    back_up(folder, 5)

    assert names(folder) == ["other.db.0011aabb.partial", "runs-20260101T000005Z.db", "runs-20260101T000005Z.db-anchor"]


def test_the_store_may_be_in_use(runs):
    """One moment of it is copied, whatever is written meanwhile."""
    from surefoot.cli.backup import _wrong

    ended = threading.Event()

    def drive():
        try:
            for n in range(60):
                more.run(f"busy-{n}", "x" * 3000)
        finally:
            ended.set()

    thread = threading.Thread(target=drive)
    thread.start()
    second = 0
    while not ended.is_set() and second < 59:
        back_up("copies/", second, verify=_wrong)
        second += 1
    thread.join()

    assert second
    assert len(names("copies")) <= 6


def test_putting_back_an_older_copy_is_noticed(cli, runs, own_folder):
    """By design: what was recorded since would be forgotten, and done again."""
    cli("backup", "copy.db")
    more.run("later", "x")
    close_all()
    for side in ("-wal", "-shm"):
        (own_folder / f".surefoot/runs.db{side}").unlink(missing_ok=True)
    DB.write_bytes((own_folder / "copy.db").read_bytes())

    ended = cli("verify")

    assert ended.code == 4
    assert "JournalRegressed" in ended.err


def test_a_store_in_memory_cannot_be_backed_up(cli):
    assert cli("backup", "copy.db", "--store", "memory:").code == 2


def test_json_names_the_copy(cli, runs):
    ended = cli("backup", "copies/", "--json").json

    assert Path(ended["path"]).exists()
    assert ended["verified"] is True
    assert ended["removed"] == []


def test_a_full_disk_is_called_that_and_leaves_nothing(runs):
    """ "Free some space" helps; "the disk is not healthy" sends people the wrong way."""
    back_up("copies/", 1)
    size = (Path("copies") / names("copies")[0]).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 4096, hard))  # to the one who writes, the same as a full disk
    try:
        with pytest.raises(sf.StoreFull, match="no room for the copy"):
            back_up("copies/", 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert len(names("copies")) == 2
