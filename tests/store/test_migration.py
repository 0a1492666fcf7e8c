"""A store of the format before: read as it is, brought up to date by whoever writes, and never in between.

`golden/store-format-1.zip` was made by the last version that wrote that format: a run that is done, one that failed, one
that stopped in doubt and one whose process was killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import apsw
import pytest

from surefoot.engine import fallback
from surefoot.store import inspection, salvage
from surefoot.store.contract import Append, RunQuery, Wanted
from surefoot.store.sqlite_file import FORMAT
from surefoot.testing.conformance import Writer, assert_whole, due

GOLDEN = Path(__file__).parents[1] / "golden" / "store-format-1.zip"
STATUSES = {"done": "done", "crashed": "running", "doubt": "stopped", "failed": "failed"}
LENGTHS = {"done": 8, "crashed": 6, "doubt": 8, "failed": 4}


@pytest.fixture
def old(place):
    unpack(place)
    return place


def unpack(place):
    with zipfile.ZipFile(GOLDEN) as files:
        files.extractall(place.path.parent)
    for name in ("runs.db", "runs.db-anchor"):
        (place.path.parent / name).chmod(0o600)


def schema(path):
    """Of a store that nobody has open."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        return rows, connection.execute("SELECT value FROM meta WHERE key = 'format'").get
    finally:
        connection.close()


def assert_unchanged(store):
    """Every run is there, whole, and listed as what it is."""
    assert {item.run: item.row.status for item in store.runs(RunQuery())} == STATUSES
    for run, length in LENGTHS.items():
        assert_whole(store, run, length)


def test_reading_leaves_it_as_it_is(old):
    """It may be evidence, a backup, or still in use by the version that made it."""
    before = old.path.read_bytes(), old.anchor.read_bytes()

    store = old.open(create=False)
    assert_unchanged(store)
    assert [item.run for item in store.runs(RunQuery(status="done"))] == ["done"]
    assert store.runs(RunQuery(labels={"who": "ann"}))[0].row.created == 1794796465291394
    assert store.tally() == {(status, ""): 1 for status in STATUSES.values()}
    assert store.durability()["journal_mode"] == "wal"
    store.close()

    assert (old.path.read_bytes(), old.anchor.read_bytes()) == before
    assert old.said == []


def test_it_is_found_sound_and_can_be_backed_up(old, tmp_path):
    """Whoever backs up before an upgrade does so with the new version as often as with the old."""
    before = old.path.read_bytes()
    for verb in (["verify"], ["backup", str(tmp_path / "copy.db")], ["inspect", str(old.path)]):
        where = [] if verb[0] == "inspect" else ["--store", f"sqlite:///{old.path}"]
        done = subprocess.run(
            [sys.executable, "-m", "surefoot", *verb, *where],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (verb, done.stdout, done.stderr)

    assert schema(tmp_path / "copy.db")[1] == 1
    assert old.path.read_bytes() == before


def test_inspection_names_the_format(old):
    seen = inspection.look(str(old.path), lambda _: None)

    assert (seen.sound, seen.format) == (True, 1)


def test_opened_for_writing_it_becomes_what_a_new_store_is(old, tmp_path):
    """Said once, since older versions cannot open it from then on."""
    store = old.open()
    assert_unchanged(store)
    store.close()
    old.open().close()
    (tmp_path / "fresh").mkdir()
    fresh = type(old)(tmp_path / "fresh")
    fresh.open().close()

    assert schema(old.path) == schema(fresh.path)
    assert schema(old.path)[1] == FORMAT
    assert old.said == [
        f"store {old.path}: brought from format 1 to format 2. Older versions of surefoot cannot open it any more."
    ]


def test_verb_that_turns_out_to_write_brings_it_up_to_date(old):
    """`surefoot settle` opens what is there, and writes only once a person has answered."""
    store = old.open(create=False)
    failed = Writer(store, "failed", head=store.read("failed").head)

    assert store.append([Append("failed", failed.head, [], due("failed", status="done"))]) == [None]

    assert len(old.said) == 1
    assert store.tally() == {("done", ""): 2, ("running", ""): 1, ("stopped", ""): 1}, "rows of both formats count"
    assert [item.run for item in store.runs(RunQuery()) if not item.outdated] == ["failed"]
    assert store.reserve(Wanted(store.worker, ["refactor"], 9, 2_000_000)).runs == ["failed"]


def test_rows_are_known_to_lack_something_until_they_are_renewed(old):
    """Nobody would ever take up the run whose process was killed: its old row does not say by whom it was claimed."""
    store = old.open()
    wanted = Wanted(store.worker, ["golden", "failing"], 9, 2_000_000)
    assert all(item.outdated for item in store.runs(RunQuery()))
    assert store.reserve(wanted).runs == []

    fallback.renew_rows(store)

    assert not any(item.outdated for item in store.runs(RunQuery()))
    assert store.reserve(wanted).runs == ["crashed"]


def test_reader_goes_on_while_another_process_brings_it_up_to_date(old):
    """A console may be open for days."""
    reader = old.open(create=False)
    assert_unchanged(reader)

    old.run_child(
        "from surefoot.engine import fallback\nstore = open_here(); fallback.renew_rows(store); store.close()"
    )

    assert_unchanged(reader)
    assert not any(item.outdated for item in reader.runs(RunQuery()))


def test_two_processes_bring_it_up_to_date_at_once(old):
    """Both can use it, and only one of them did it."""
    code = "print('ready', flush=True); sys.stdin.readline()\nopen_here(announce=lambda said: print(said)).close()"
    children = [old.child(code) for _ in range(2)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    said = []
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        said += child.communicate()[0].splitlines()
        assert child.returncode == 0

    assert len(said) == 1
    assert_unchanged(old.open(create=False))


def test_killed_at_any_point_it_is_of_one_format_or_the_other(old, tmp_path):
    """Before every write and every sync of SQLite: every run is there, and the next process gets on with it."""
    formats = []
    while True:
        folder = tmp_path / f"killed-{len(formats)}"
        folder.mkdir()
        here = type(old)(folder)
        unpack(here)
        status = migrate_and_die_at(here, len(formats) + 1)
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL

        store = here.open(create=False)
        assert_unchanged(store)
        formats.append(FORMAT if store._is_current() else 1)
        assert store.append([Append("done", store.read("done").head, [], due("done"))]) == [None]
        store.close()
        assert schema(here.path)[1] == FORMAT
        assert len(here.said) == (formats[-1] == 1)

    assert formats == sorted(formats)
    assert set(formats) == {1, FORMAT}


def migrate_and_die_at(place, at):
    """Open it for writing in a forked child, and SIGKILL that right before its n-th write or sync."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    count = 0

    def act():
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    class File(apsw.VFSFile):
        def xWrite(self, data, offset):  # noqa: N802 - SQLite's name
            act()
            return super().xWrite(data, offset)

        def xSync(self, flags):  # noqa: N802 - SQLite's name
            act()
            return super().xSync(flags)

    class Disk(apsw.VFS):
        def __init__(self):
            super().__init__("deadly", "unix", makedefault=True)

        def xOpen(self, name, flags):  # noqa: N802 - SQLite's name
            return File("unix", name, flags)

    try:
        disk = Disk()
        store = place.open()
        store.close()
        assert disk
    except BaseException:
        os._exit(1)
    os._exit(0)


def test_damaged_store_of_format_1_is_built_anew(old):
    """Nothing of it is in a newer format than the tables that it is put into."""
    content = old.path.read_bytes()
    page = content.rindex(b'"workflow":"failing"') // 4096  # entries of the newest run, and not of all
    with old.path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(bytes(8))

    result = salvage.rebuild(str(old.path))

    assert result.copied["runs"] == 4
    store = old.open()
    assert {item.run: item.row.status for item in store.runs(RunQuery())} == STATUSES
    store.close()
    assert schema(old.path)[1] == FORMAT
