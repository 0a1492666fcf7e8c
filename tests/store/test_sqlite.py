"""What the SQLite store promises beyond the contract: settings, files, other processes, faults."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import stat
import sys
import tempfile
from pathlib import Path

import apsw
import pytest

from surefoot.core.parts import expand
from surefoot.core.seal import Sealer, verify
from surefoot.errors import (
    JournalCorrupt,
    NotFound,
    SchemaMismatch,
    StoreFull,
    StoreNotDurable,
    StoreUnavailable,
    UsageError,
)
from surefoot.store import pages
from surefoot.store.contract import Conflict, Extend, Listed, RunQuery
from surefoot.store.sqlite import files as sqlite_file
from surefoot.store.sqlite import store as sqlite
from surefoot.store.sqlite.salvage import rebuild
from surefoot.testing.conformance import Writer, assert_whole, index_row, large_value

TABLES = ("entries", "heads", "runs", "meta", "parts", "quarantine", "starts", "run_labels")


def change(path, *statements):
    """Alter a closed store behind surefoot's back."""
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


# --- settings and files ------------------------------------------------------------------------------


def test_durable_settings_are_in_force_and_read_back(place):
    """Durability is checked, not assumed."""
    settings = place.open().durability()

    assert settings["journal_mode"] == "wal"
    assert settings["synchronous"] == "full"
    assert settings["fullfsync"] == settings["checkpoint_fullfsync"] == "on"
    assert settings["wal_autocheckpoint"] == "250"
    assert settings["page_size"] == "4096"
    assert settings["sqlite"] == apsw.sqlite_lib_version()
    assert settings["anchor"] == str(place.anchor)


def test_settings_that_do_not_hold_are_a_stop(place, monkeypatch):
    """A file system or a library that ignores the setting must not be trusted with anything."""
    monkeypatch.setattr(sqlite, "_settings", lambda _: {"journal_mode": "wal", "synchronous": "normal"})

    with pytest.raises(StoreNotDurable, match="synchronous=normal"):
        place.open()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_files_are_for_their_owner_alone_whatever_the_umask(tmp_path, umask):
    """Journals hold customers' data and prompts."""
    folder = tmp_path / "new" / "folder"
    before = os.umask(umask)
    try:
        store = sqlite.SqliteStore.open(str(folder / "runs.db"), create=True, url="x")
        assert store.worker
        store.append([Writer(store, "r").append(b"1")])
    finally:
        os.umask(before)

    found = {file.name: stat.S_IMODE(file.lstat().st_mode) for file in folder.rglob("*")}
    worker = store.worker
    store.close()

    assert found == {
        "runs.db": 0o600, "runs.db-wal": 0o600, "runs.db-shm": 0o600, "runs.db-anchor": 0o600,
        "runs.db-workers": 0o700, worker: 0o600,
    }  # fmt: skip
    assert [stat.S_IMODE(made.stat().st_mode) for made in (folder, folder.parent)] == [0o700, 0o700]


def test_side_files_that_are_links_are_refused(place, tmp_path):
    """Somebody who can write beside the store must not make us write elsewhere."""
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    place.anchor.symlink_to(target)

    with pytest.raises(StoreUnavailable, match="symbolic link"):
        place.open()

    assert target.read_bytes() == b"precious"


def test_store_reached_by_a_link_is_the_store(place, tmp_path):
    """A linked folder or file is an ordinary thing; the side files lie beside the real one."""
    place.fill()
    link = tmp_path / "link.db"
    link.symlink_to(place.path)

    store = sqlite.SqliteStore.open(str(link), create=False, url="x")

    assert_whole(store, "r", 5)
    store.close()
    assert not Path(f"{link}-anchor").exists()


def test_making_a_store_is_announced_and_opening_it_is_not(place):
    """A mistyped path is seen at once."""
    place.open().close()
    place.open().close()

    assert place.said == [f"created store {place.path}"]


def test_reading_verb_makes_nothing(place):
    """`surefoot runs` in the wrong folder must say so and leave no files."""
    with pytest.raises(NotFound, match=str(place.path)):
        place.open(create=False)

    assert list(place.path.parent.iterdir()) == []


def test_reading_verb_does_not_change_the_store(place):
    """Looking must not write: neither the database nor its log, nor join the workers."""
    place.fill()
    before = {file: file.read_bytes() for file in (place.path, place.wal, place.anchor)}

    store = place.open(create=False)
    assert_whole(store, "r", 5)
    store.runs(RunQuery())
    store.changes()
    store.close()

    assert {file: file.read_bytes() for file in before} == before
    assert not place.workers.exists()


def test_database_alone_is_complete_after_a_clean_close(place, tmp_path):
    """People copy the one file they know of."""
    place.fill(count=30)

    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / "runs.db"
    shutil.copy(place.path, copy)
    shutil.copy(place.anchor, f"{copy}-anchor")

    store = sqlite.SqliteStore.open(str(copy), create=False, url="x")
    assert_whole(store, "r", 30)
    store.close()


def test_log_is_emptied_but_kept_on_close(place):
    """Its space is given back; its name stays, so that readers need not make one, and as a trace of the store."""
    place.fill()

    assert place.wal.stat().st_size == 0


def test_people_can_read_the_journal_with_sqlite(place):
    """The view shows bodies as text and times as dates."""
    place.fill(count=1)

    connection = apsw.Connection(str(place.path))
    rows = connection.execute("SELECT pos, run, seq, at, kind, body, length(seal) FROM journal").fetchall()
    connection.close()

    assert rows == [(1, "r", 1, "1970-01-01T00:00:01.000Z", 21, '{"n":0}', 64)]


# --- what is not a store -------------------------------------------------------------------------------


def test_folder_is_not_a_store(place):
    """A typed error, not a stack trace."""
    place.path.mkdir()

    with pytest.raises(UsageError, match="is a directory"):
        place.open()


@pytest.mark.parametrize("content", [b"", b"dear diary\n" * 500, b"x"])
def test_file_that_is_no_database_is_left_alone(place, content):
    """Never is something that was there turned into a store."""
    place.path.write_bytes(content)

    with pytest.raises(UsageError, match="not a surefoot store"):
        place.open()

    assert place.path.read_bytes() == content
    assert not place.anchor.exists()


def test_database_of_another_program_is_left_alone(place):
    """Nor is somebody's own data given our tables."""
    change(place.path, "CREATE TABLE mine (x)", "INSERT INTO mine VALUES (1)")
    before = place.path.read_bytes()

    with pytest.raises(UsageError, match="another program"):
        place.open()

    assert place.path.read_bytes() == before


def test_database_with_our_mark_but_without_our_tables_is_refused(place):
    """It may have been ours; what is missing is not made anew."""
    place.fill()
    change(place.path, "DROP VIEW journal", *(f"DROP TABLE {name}" for name in TABLES))
    place.anchor.unlink()

    with pytest.raises(UsageError, match="none of a store's tables"):
        place.open()


@pytest.mark.parametrize("table", TABLES)
def test_lost_table_is_damage(place, table):
    """It is not made anew."""
    place.fill()
    change(place.path, "DROP VIEW journal", f"DROP TABLE {table}")

    with pytest.raises(JournalCorrupt):
        place.open()


def test_newer_format_is_refused(place):
    """A version that does not know the format must not guess."""
    place.fill()
    change(place.path, "UPDATE meta SET value = 2 WHERE key = 'format'")

    with pytest.raises(SchemaMismatch, match=r"has format 2, this version of surefoot knows up to 1\."):
        place.open()


def test_parent_that_is_a_file_is_named(tmp_path):
    """A path that cannot be."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StoreUnavailable, match="Not a directory"):
        sqlite.SqliteStore.open(str(tmp_path / "file" / "runs.db"), create=True, url="x")


@pytest.mark.processes
def test_folder_that_may_not_be_written_is_named():
    """As a user who lacks the right: root is allowed everything, so the child becomes somebody else."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755 if os.getuid() == 0 else 0o555)
    try:
        status = _in_fork(lambda: _expect_unavailable_as_nobody(folder / "runs.db"))
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)

    assert status == 0


def _expect_unavailable_as_nobody(path):
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    with pytest.raises(StoreUnavailable, match="Permission denied"):
        sqlite.SqliteStore.open(str(path), create=True, url="x")


def _in_fork(work):
    """Run it in a forked child; its exit status."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# --- damaged rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = CAST(body AS TEXT) WHERE seq = 2",
        "UPDATE entries SET body = CAST(x'ff' AS TEXT) WHERE seq = 2",
        "UPDATE entries SET seal = 'x' WHERE seq = 2",
        "UPDATE entries SET epoch = 'x' WHERE seq = 2",
        "UPDATE entries SET at = 1.5 WHERE seq = 2",
        "UPDATE heads SET seal = 'x'",
        "UPDATE heads SET seq = 'x'",
    ],
)
def test_value_of_another_type_is_damage(place, statement):
    """A flipped bit can turn bytes into a text; that is a damaged record, not a TypeError."""
    place.fill()
    change(place.path, statement)

    with pytest.raises(JournalCorrupt, match="r"):
        place.open().read("r")


def test_head_without_records_and_records_without_a_head_are_returned_as_they_are(place):
    """The store does not judge; the engine does."""
    place.fill("a", "b")
    change(place.path, "DELETE FROM entries WHERE run = 'a'", "DELETE FROM heads WHERE run = 'b'")
    store = place.open()

    assert (store.read("a").records, store.read("a").head.seq) == ([], 5)
    assert (len(store.read("b").records), store.read("b").head) == (5, None)


def test_record_behind_the_head_is_a_conflict_and_moves_nothing(place):
    """A damaged head must not let a writer overwrite or skip what is there."""
    place.fill("a", "b")
    change(place.path, "UPDATE heads SET seq = 4, seal = (SELECT seal FROM entries WHERE seq = 4 AND run = 'a')"
                       " WHERE run = 'a'")  # fmt: skip
    store = place.open()
    head = store.read("a").head
    other = Writer(store, "b", head=store.read("b").head)

    assert store.append([Writer(store, "a", head=head).append(b"x")]) == [Conflict("a")]
    assert store.append([Writer(store, "a", head=head).append(b"x"), other.append(b"y")]) == [Conflict("a"), None]

    assert store.read("a").head == head
    assert_whole(store, "b", 6)


def leaf_of(value):
    return [*value.leaves][-1]


@pytest.mark.parametrize(
    "act",
    [
        lambda store, lost, _: store.parts([leaf_of(lost)]),
        lambda store, lost, _: store.append([Writer(store, "other").append(b"1", cuts=[lost])]),
        lambda store, lost, upto: store.discard([leaf_of(lost)], upto),
    ],
    ids=["read", "write", "discard"],
)
def test_index_that_points_to_another_part_is_damage_of_the_database(place, act):
    """One flipped bit. To call the part damaged would lose a value that is there; to heal or to delete it, another one."""
    store = place.open()
    lost, other = large_value(1), large_value(2)
    store.append([Writer(store, "r").append(b"1", cuts=[lost, other])])
    store.close()
    with contextlib.closing(apsw.Connection(str(place.path))) as db:
        names = dict(db.execute("SELECT id, n FROM parts").fetchall())
    content = place.path.read_bytes()
    right, wrong = (leaf_of(value) + bytes([names[leaf_of(value)]]) for value in (lost, other))
    assert content.count(right) == 1
    place.path.write_bytes(content.replace(right, right[:-1] + wrong[-1:]))

    store = place.open()
    with pytest.raises(JournalCorrupt, match="index of the parts") as raised:
        act(store, lost, store.changes())

    assert raised.value.facts["structure"]
    store.abandon()
    rebuild(str(place.path))
    store = place.open()
    assert [expand(value.reference, store.parts) for value in (lost, other)] == [
        expand(value.reference, lambda ids, value=value: {name: value.part(name) for name in ids})
        for value in (lost, other)
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET status = 'done' WHERE run = 'a'",
        "UPDATE runs SET status = CAST(x'ff' AS TEXT) WHERE run = 'a'",
        "UPDATE runs SET labels = x'00' WHERE run = 'a'",
        "UPDATE runs SET created = NULL WHERE run = 'a'",
        "UPDATE runs SET checksum = 'x' WHERE run = 'a'",
        "DELETE FROM runs WHERE run = 'a'",
    ],
)
@pytest.mark.parametrize("query", [RunQuery(), RunQuery(status="running"), RunQuery(workflow="refactor")])
def test_damaged_index_row_is_noticed_and_hides_nothing(place, statement, query):
    """The list is a cache: a row that is not what was written is as good as none, and the run still shows. Only where the
    very thing was altered that is asked for, index and all, does a filter not meet it; the whole list does, and verify.
    """
    if query.status and "SET status" in statement:
        query = RunQuery(workflow="refactor")
    store = place.open()
    for run in ("a", "b", "c"):
        store.append([Writer(store, run).append(b"1", row=index_row(run))])
    store.close()
    change(place.path, statement)

    listed = place.open(create=False).runs(query)

    assert listed == [Listed("c", index_row("c")), Listed("b", index_row("b")), Listed("a", None)]


def test_list_longer_than_one_look_is_complete(place, monkeypatch):
    """Long lists are read in pieces."""
    monkeypatch.setattr(pages, "_ROWS_PER_LOOK", 3)
    store = place.open()
    store.append([Writer(store, f"{n}").append(b"1", row=index_row(f"{n}")) for n in range(10)])

    assert [item.run for item in store.runs(RunQuery())] == [f"{n}" for n in range(9, -1, -1)]
    assert [item.run for item in store.runs(RunQuery(limit=4, before="5"))] == ["4", "3", "2", "1"]


def test_run_id_that_is_no_text_is_refused(place):
    """A lone surrogate cannot be stored as UTF-8; that is the caller's, and the store stays usable."""
    store = place.open()

    with pytest.raises(UsageError):
        store.append([Writer(store, "\ud800").append(b"1")])
    with pytest.raises(UsageError):
        store.read("\ud800")

    assert store.append([Writer(store, "r\0r").append(b"1")]) == [None]
    assert_whole(store, "r\0r", 1)


# --- other processes -----------------------------------------------------------------------------------

HAMMER = """
store, name = open_here(), sys.argv[2]
own = Writer(store, name)
print("ready", flush=True)
sys.stdin.readline()
for n in range(40):
    assert store.append([own.append(b"%d" % n)]) == [None]
    while store.append([Writer(store, "shared", head=store.read("shared").head).append(name.encode())]) != [None]:
        pass
store.close()
"""


@pytest.mark.processes
def test_two_processes_append_at_once(place):
    """Each append is granted once, in one gapless chain, and neither process disturbs the other's runs."""
    children = [place.child(HAMMER, name) for name in ("one", "two")]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    assert [child.wait() for child in children] == [0, 0]

    store = place.open(create=False)

    bodies = [record.body for record in assert_whole(store, "shared", 80).records]
    assert sorted(bodies) == [b"one"] * 40 + [b"two"] * 40
    assert_whole(store, "one", 40)
    assert_whole(store, "two", 40)


@pytest.mark.processes
def test_two_processes_make_the_same_store_at_once(place):
    """Both must succeed, with one store between them: nobody's first record may be lost."""
    code = """
print("ready", flush=True)
sys.stdin.readline()
store = open_here()
assert store.append([Writer(store, sys.argv[2]).append(b"1")]) == [None]
print(store.id.hex())
"""
    for n in range(4):
        folder = place.path.parent / str(n)
        folder.mkdir()
        here = type(place)(folder)
        children = [here.child(code, name) for name in ("one", "two", "three")]
        for child in children:
            child.stdout.readline()
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        said = [child.communicate()[0].strip() for child in children]

        store = here.open(create=False)
        assert said == [store.id.hex()] * 3
        for name in ("one", "two", "three"):
            assert_whole(store, name, 1)
        here.clear_up()


@pytest.mark.processes
def test_changes_moves_when_another_process_appended(place):
    """Waiting for another process's entry."""
    store = place.open()
    before = store.changes()

    place.run_child("store = open_here(); store.append([Writer(store, 'r').append(b'1')]); store.close()")

    assert store.changes() != before
    assert_whole(store, "r", 1)


@pytest.mark.processes
def test_locked_database_is_named_within_the_time_given_and_works_again_after(place, monkeypatch):
    """Waiting is bounded; nothing was written, so the handle stays good."""
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    store = place.open()
    writer = Writer(store, "r")
    wish = writer.append(b"1")
    holder = place.child(
        "import apsw; held = apsw.Connection(path); held.execute('BEGIN IMMEDIATE')\n"
        "print('locked', flush=True); sys.stdin.readline()\n"
        "held.execute('ROLLBACK'); held.close(); print('free', flush=True)"
    )
    holder.stdout.readline()

    with pytest.raises(StoreUnavailable, match=r"locked by another process for 0\.05 s"):
        store.append([wish])
    assert store.read("r").head is None

    holder.stdin.write("\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "free\n"
    assert store.append([wish]) == [None]


ENDLESS = """
store = open_here()
writer = Writer(store, "r", head=store.read("r").head)
while True:
    store.append([writer.append(b"x" * 100)])
    print(writer.head.seq, flush=True)
"""


@pytest.mark.processes
def test_kill_in_the_middle_of_appends_loses_nothing_that_was_acknowledged(place):
    """Eight times SIGKILL, each after a random number of commits, on one and the same store."""
    chance = random.Random(8)
    for _ in range(8):
        child = place.child(ENDLESS)
        for _ in range(chance.randrange(1, 60)):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split()  # not communicate(): it would miss what readline() has read ahead
        child.wait()
        acknowledged = int(rest[-1]) if rest else acknowledged

        store = place.open(create=False)
        stored = store.read("r")
        assert acknowledged <= stored.head.seq <= acknowledged + 1
        assert_whole(store, "r", stored.head.seq)
        store.close()


# --- faults ----------------------------------------------------------------------------------------------

FULL = """
import resource
store = open_here()
writer = Writer(store, "r")
store.append([writer.append(b"1")])
good = writer.head
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limit[1]))
try:
    while True:
        store.append([writer.append(b"x" * 5000)])
        good = writer.head
except StoreFull as error:
    print(type(error).__name__, good.seq)
resource.setrlimit(resource.RLIMIT_FSIZE, limit)
try:
    store.append([Writer(store, "r", head=good).append(b"again")])
except StoreUnavailable as error:
    print("given up" in str(error))
fresh = open_here()
assert fresh.read("r").head == good
assert fresh.append([Writer(fresh, "r", head=good).append(b"again")]) == [None]
assert_whole(fresh, "r", good.seq + 1)
print(good.seq + 1)
"""


@pytest.mark.processes
def test_full_disk_is_named_and_the_store_goes_on_once_there_is_space(place):
    """A limit on file sizes stands in for the disk: the same failed write, without needing root."""
    lines = place.run_child(FULL).splitlines()

    assert lines[0].startswith("StoreFull ")
    assert lines[1] == "True"
    assert_whole(place.open(create=False), "r", int(lines[2]))


class FaultyFile(apsw.VFSFile):
    fault: Exception | None = None

    def xSync(self, flags):  # noqa: N802 - SQLite's name
        if FaultyFile.fault is not None:
            raise FaultyFile.fault
        return super().xSync(flags)


class FaultyDisk(apsw.VFS):
    def __init__(self):
        super().__init__("faulty", "unix", makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's name
        return FaultyFile("unix", name, flags)


@pytest.fixture
def disk():
    made = FaultyDisk()
    yield FaultyFile
    FaultyFile.fault = None
    made.unregister()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # apsw reports what a VFS raises
@pytest.mark.parametrize("fault", [apsw.IOError("sync failed"), apsw.FullError("no space")])
def test_failed_sync_is_never_retried_on_the_same_handle(place, disk, fault):
    """SQLite would accept the next commit as if nothing had happened; the pages may be gone."""
    store = place.open()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    head, worker = writer.head, store.worker
    disk.fault = fault

    with pytest.raises(StoreUnavailable) as caught:
        store.append([writer.append(b"2")])
    assert isinstance(caught.value, StoreFull) == isinstance(fault, apsw.FullError)

    disk.fault = None
    for use in (lambda: store.append([Writer(store, "r", head=head).append(b"2")]), lambda: store.read("r")):
        with pytest.raises(StoreUnavailable, match="given up"):
            use()
    fresh = place.open()
    assert fresh.alive(worker), "calls of this process may still be in flight: others must not take them over"
    assert assert_whole(fresh, "r", fresh.read("r").head.seq).head.seq in (1, 2)


def test_database_replaced_while_open_is_noticed_before_the_next_append(place, tmp_path):
    """Commits to a file that nobody can reach any more would be acknowledged and lost."""
    place.fill()
    shutil.copy(place.path, tmp_path / "copy.db")
    store = place.open()
    head = store.read("r").head
    (tmp_path / "copy.db").rename(place.path)

    with pytest.raises(StoreUnavailable, match="replaced"):
        store.append([Writer(store, "r", head=head).append(b"x")])
    assert not store.usable


def test_path_that_sqlite_cannot_take_is_refused_before_anything_is_made(tmp_path):
    """Old archives unpack to names that are not UTF-8."""
    folder = os.path.join(tmp_path, os.fsdecode(b"caf\xe9"))

    with pytest.raises(UsageError, match=r"caf\\xe9.*not UTF-8"):
        sqlite.SqliteStore.open(os.path.join(folder, "runs.db"), create=True, url="x")

    assert not os.path.lexists(folder)


def test_missing_database_is_noticed_while_open(place):
    """Deleted by hand, under a running worker. Opened again, the store would be a new one, and empty."""
    place.fill()
    store = place.open()
    place.path.unlink()

    with pytest.raises(StoreUnavailable, match="removed") as raised:
        store.read("r")

    assert "Open the store again" not in str(raised.value)
    assert "Put a backup back" in str(raised.value)


def test_interrupt_in_an_append_leaves_no_transaction_open(place, monkeypatch):
    """Ctrl-C arrives anywhere; the next append must work, and others must not be locked out."""
    store = place.open()
    writer = Writer(store, "r")
    wish = writer.append(b"1")

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "_refuse_if_regressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.append([wish])
    monkeypatch.undo()

    assert store.read("r").head is None
    assert store.append([wish]) == [None]


def test_store_that_cannot_be_made_ready_leaves_nothing_open(place, monkeypatch):
    """A worker that tries again every few seconds would have no descriptor left by the morning."""
    place.fill()

    def fails(self):
        raise StoreUnavailable("the disk does not answer")

    monkeypatch.setattr(sqlite.SqliteStore, "_open_writer", fails)
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            place.open()

    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.processes
def test_too_few_descriptors_is_unavailable_not_missing(place):
    """A process that ran out of descriptors must not take a store for a new one."""
    place.fill()
    said = place.run_child(
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n"
        "try:\n    open_here()\n"
        "except StoreUnavailable as error:\n    os.write(1, str(error).encode())\n"
    )

    assert "cannot be" in said
    assert_whole(place.open(create=False), "r", 5)


# --- fork --------------------------------------------------------------------------------------------------

FORK = """
store = open_here()
writer = Writer(store, "r")
store.append([writer.append(b"1")])
worker = store.worker
pid = os.fork()
if pid == 0:
    for use in (lambda: store.append([writer.append(b"2")]), lambda: store.read("r"), lambda: store.runs(RunQuery()),
                store.changes, lambda: store.worker, lambda: store.alive(worker), store.durability,
                lambda: open_here(), lambda: open_store("sqlite:///" + path, create=False)):
        try:
            use()
        except StoreUnavailable as error:
            assert "opened in another process" in str(error), error
            assert "in a helper process, call plain functions, from inside a step or an effect" in str(error), error
            assert "spawn" not in str(error), "effects in such a process would be outside of the run, and in silence"
        else:
            os._exit(3)
    store.close()
    if sys.argv[2] == "hard":
        os._exit(0)
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert store.alive(worker)
for n in range(300):
    assert store.append([writer.append(b"%d" % n)]) == [None]
assert_whole(store, "r", 301)
print("locked out" if sys.argv[2] else "", flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.processes
@pytest.mark.parametrize("end", ["hard", "ordinary"])
def test_forked_child_cannot_use_or_harm_the_parents_store(place, end):
    """SQLite's locks do not come along, and even closing the handle in the child would drop the parent's."""
    parent = place.child(FORK, end)
    assert parent.stdout.readline() == "locked out\n"

    store = place.open(create=False)
    assert_whole(store, "r", 301)
    (worker,) = (file.name for file in place.workers.iterdir())
    assert store.alive(worker), "the child's end must not have dropped the parent's lock"

    parent.stdin.write("\n")
    parent.stdin.flush()
    parent.wait()
    assert not store.alive(worker)
    assert_whole(store, "r", 301)


WATCHED = """
import apsw
parent = os.getpid()
class File(apsw.VFSFile):
    def xClose(self):
        if os.getpid() != parent:
            os.write(1, b"the child closed a handle\\n")
        super().xClose()
class Disk(apsw.VFS):
    def __init__(self):
        super().__init__("watched", "unix", makedefault=True)
    def xOpen(self, name, flags):
        return File("unix", name, flags)
disk = Disk()
store = open_here()
store.append([Writer(store, "r").append(b"1")])
if os.fork() == 0:
    del store
    sys.exit(0)
os.wait()
assert_whole(store, "r", 1)
"""


@pytest.mark.processes
def test_forked_child_closes_no_handle_not_even_at_its_end(place):
    """The interpreter clears up at exit and closes what nobody holds any more; these must be held for ever."""
    assert place.run_child(WATCHED) == ""


@pytest.mark.processes
def test_store_closed_before_the_fork_can_be_opened_in_the_child(place):
    """The cure the message names."""
    place.fill()

    def work():
        store = sqlite.SqliteStore.open(str(place.path), create=False, url="x")
        assert_whole(store, "r", 5)
        store.close()

    assert _in_fork(work) == 0


# --- speed -------------------------------------------------------------------------------------------------


def test_single_append_is_one_sync(place, disk, monkeypatch):
    """Durable costs one sync of the log, and not more: everything else is arithmetic."""
    store = place.open()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    synced = []
    monkeypatch.setattr(disk, "xSync", lambda self, flags: synced.append(flags) or apsw.VFSFile.xSync(self, flags))

    store.append([writer.append(b"2")])

    assert len(synced) == 1


def test_whole_chain_verifies_after_many_kinds_of_batches(place):
    """Statements of many rows must keep the order of a run's records."""
    store = place.open()
    writer = Writer(store, "r")
    for count in (1, 2, 49, 50, 51, 120):
        store.append([writer.append(*[b"%d" % n for n in range(count)])])

    stored = store.read("r")
    assert verify(Sealer(store.id, "r"), stored.records) == 273
    assert store.changes() == 273
    assert Extend("r", stored.head, []).head == writer.head
