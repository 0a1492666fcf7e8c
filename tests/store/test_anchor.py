"""The anchor: a journal that has lost something is never taken for whole, nor a store that was emptied for new."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from pathlib import Path

import apsw
import pytest

from surefoot.errors import JournalCorrupt, JournalRegressed, NotFound, SchemaMismatch, StoreUnavailable
from surefoot.store import anchor as anchor_module
from surefoot.store.anchor import Anchor, Mark, Unreadable
from surefoot.store.sqlite import files as sqlite_file
from surefoot.store.sqlite import probe
from surefoot.testing.conformance import Writer, assert_whole

STORE = b"0123456789abcdef"
SLOTS = (0, 512)


def append_one(place, run="r"):
    store = place.open()
    store.append([Writer(store, run, head=store.read(run).head).append(b"more")])
    store.close()


def spoil(path, offset):
    with path.open("r+b") as file:
        file.seek(offset + 20)
        file.write(b"\xff\xff\xff")


def refused(place):
    """Every way to open the store is refused, with what to do, and nothing is changed by trying."""
    files = [file for file in place.path.parent.iterdir() if file.is_file() and not file.name.endswith("-shm")]
    before = {file: file.read_bytes() for file in files}
    for create in (True, False):
        with pytest.raises(JournalRegressed) as caught:
            place.open(create=create)
    assert {file: file.read_bytes() for file in files} == before
    assert caught.value.cures
    return str(caught.value)


# --- lost history ----------------------------------------------------------------------------------------


def test_older_copy_put_back_is_noticed(place, tmp_path):
    """A restored backup would repeat effects that were done since."""
    place.fill()
    shutil.copy(place.path, tmp_path / "old.db")
    append_one(place)
    place.wal.unlink()
    shutil.copy(tmp_path / "old.db", place.path)

    message = refused(place)

    assert "6 records" in message
    assert "ends at record 5" in message
    assert "put the newer runs.db back" in message


def test_deleted_log_is_noticed(place, tmp_path):
    """The newest commits live in the `-wal` file, which looks like something one may delete."""
    place.fill()
    store = place.open()
    store.append([Writer(store, "r", head=store.read("r").head).append(b"more")])
    copy = place.copy_to(tmp_path / "copy")
    copy.wal.unlink()

    assert "ends at record 5" in refused(copy)


def test_refused_store_keeps_its_log_as_evidence(place, tmp_path):
    """Opening and closing must not fold the log into the database before the anchor was found to hold."""
    place.fill()
    store = place.open()
    store.append([Writer(store, "r", head=store.read("r").head).append(b"more")])
    copy = place.copy_to(tmp_path / "copy")
    raised = Anchor(str(copy.anchor), create=False)
    raised.read()
    raised.advance(Mark(store.id, 99, bytes(32)))
    raised.close()
    log = copy.wal.read_bytes()

    refused(copy)

    assert copy.wal.read_bytes() == log


@pytest.mark.parametrize("log", ["kept", "deleted"])
def test_emptied_database_is_noticed(place, log):
    """An empty file with an anchor is never a new store."""
    place.fill()
    os.truncate(place.path, 0)
    if log == "deleted":
        place.wal.unlink()

    assert "the database is empty" in refused(place)


def test_deleted_database_is_noticed(place):
    """Nor is a missing one."""
    place.fill()
    place.path.unlink()

    assert "the database is missing" in refused(place)


def test_text_file_in_its_place_is_noticed(place):
    """Something else with the same name."""
    place.fill()
    place.wal.unlink()
    place.path.write_text("dear diary\n" * 1000)

    with pytest.raises(JournalCorrupt, match="no SQLite file"):
        place.open()


def test_database_of_another_program_in_its_place_is_noticed(place):
    """Not given our tables, and not taken for an empty store."""
    place.fill()
    place.path.unlink()
    place.wal.unlink()
    connection = apsw.Connection(str(place.path))
    connection.execute("CREATE TABLE mine (x)")
    connection.close()

    assert "another program" in refused(place)


def test_another_store_in_its_place_is_noticed(place, tmp_path):
    """Two stores mixed up by copying."""
    place.fill()
    (tmp_path / "other").mkdir()
    other = type(place)(tmp_path / "other")
    other.fill(count=9)
    place.wal.unlink()
    shutil.copy(other.path, place.path)

    assert "another store" in refused(place)


def test_another_history_of_the_same_store_is_noticed(place, tmp_path):
    """A copy that went its own way has as many records, but not the same."""
    place.fill()
    copy = place.copy_to(tmp_path / "copy")
    store = copy.open()
    store.append([Writer(store, "r", head=store.read("r").head).append(b"otherwise")] * 1)
    store.append([Writer(store, "s").append(b"longer")])
    store.close()
    append_one(place)
    place.wal.unlink()
    shutil.copy(copy.path, place.path)

    assert "another history" in refused(place)


def test_history_cut_while_the_store_is_open_is_noticed(place):
    """Records deleted behind a live writer: the next one would take a number that was acknowledged before."""
    store = place.open()
    writer = Writer(store, "r")
    for n in range(3):
        store.append([writer.append(b"%d" % n)])
    place.run_child("import apsw; apsw.Connection(path).execute('DELETE FROM entries WHERE pos > 1')")

    with pytest.raises(JournalRegressed, match="lost records while it was open"):
        store.append([writer.append(b"4")])
    with pytest.raises(StoreUnavailable):
        store.read("r")


# --- the anchor itself -----------------------------------------------------------------------------------


def test_anchor_is_never_ahead_and_never_behind_after_a_commit(place):
    """It names the newest record."""
    store = place.open()
    for run in ("a", "b"):
        writer = Writer(store, run)
        store.append([writer.append(b"1", b"2")])
        noted = Anchor(str(place.anchor), create=False)
        assert noted.read() == Mark(store.id, store.changes(), writer.head.seal)
        noted.close()


def test_anchor_that_is_merely_behind_is_brought_up(place, tmp_path):
    """The process died between the commit and the note; nothing is wrong."""
    place.fill()
    shutil.copy(place.anchor, tmp_path / "old")
    append_one(place)
    shutil.copy(tmp_path / "old", place.anchor)

    place.open(create=False).close()

    noted = Anchor(str(place.anchor), create=False)
    assert noted.read().pos == 6
    noted.close()


@pytest.mark.parametrize("slot", SLOTS)
def test_one_damaged_slot_heals(place, slot):
    """A torn write spoils one; the other still speaks."""
    place.fill()
    spoil(place.anchor, slot)

    store = place.open(create=False)
    assert_whole(store, "r", 5)
    store.close()

    healed = Anchor(str(place.anchor), create=False)
    assert healed.read().pos == 5
    assert healed.intact()
    healed.close()


@pytest.mark.parametrize("slot", SLOTS)
def test_one_damaged_slot_still_notices_an_older_copy(place, tmp_path, slot):
    """The slot that is left is at most one commit older."""
    place.fill()
    shutil.copy(place.path, tmp_path / "old.db")
    append_one(place)
    append_one(place)
    place.wal.unlink()
    shutil.copy(tmp_path / "old.db", place.path)
    spoil(place.anchor, slot)

    with pytest.raises(JournalRegressed):
        place.open()


def test_both_slots_damaged_is_a_stop(place):
    """Nobody can say whether the journal is complete."""
    place.fill()
    for slot in SLOTS:
        spoil(place.anchor, slot)

    assert str(place.anchor) in refused(place)


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_missing_anchor_beside_records_is_a_stop(place, how):
    """It is not made anew: it would vouch for what it has not seen."""
    place.fill()
    place.anchor.unlink()
    if how == "empty":
        place.anchor.touch()

    assert str(place.anchor) in refused(place)


def test_missing_anchor_beside_an_empty_journal_is_made_again(place):
    """There is nothing that could have been lost."""
    place.open().close()
    place.anchor.unlink()

    store = place.open()
    store.append([Writer(store, "r").append(b"1")])
    store.close()

    assert_whole(place.open(), "r", 1)


def test_missing_anchor_beside_heads_without_records_is_a_stop(place):
    """A journal that only looks empty."""
    place.fill()
    connection = apsw.Connection(str(place.path))
    connection.execute("DELETE FROM entries")
    connection.close()
    place.anchor.unlink()

    assert str(place.anchor) in refused(place)


def test_damaged_anchor_without_a_database_is_a_stop(place):
    """There was something here once."""
    place.anchor.write_bytes(b"\x01" * 600)

    assert str(place.anchor) in refused(place)


def test_log_without_a_database_is_a_stop(place):
    """SQLite would lay the old log's pages over a new database."""
    place.fill()
    place.path.unlink()
    place.anchor.unlink()

    assert str(place.wal) in refused(place)


def test_anchor_that_the_disk_does_not_give_is_said_by_name(place, monkeypatch):
    """An I/O error there is told like any other, with what to do; it is not taken for an anchor that is damaged."""
    place.fill()
    store = place.open()

    def fails(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(anchor_module.os, "pread", fails)
        said = probe.anchor_fault(store)
        with pytest.raises(StoreUnavailable, match=r"anchor cannot be read \(Input/output error\).*try again"):
            place.open()
    store.close()

    assert "cannot be read (Input/output error)" in said
    place.open().close()


def test_anchor_of_a_newer_format_is_refused(place, monkeypatch):
    """A version that does not know the format must not guess."""
    place.fill()
    noted = Anchor(str(place.anchor), create=False)
    mark = noted.read()
    monkeypatch.setattr(anchor_module, "FORMAT", 2)
    noted.begin(mark)
    noted.close()
    monkeypatch.undo()

    with pytest.raises(SchemaMismatch, match="format 2"):
        place.open()


def test_smaller_mark_never_overwrites_a_larger_one(tmp_path):
    """Two processes commit 6 and 7; the one with 6 may be the last to write."""
    path = str(tmp_path / "anchor")
    first, second = Anchor(path, create=True), Anchor(path, create=False)
    first.begin(Mark(STORE, 0, bytes(32)))
    second.read()

    second.advance(Mark(STORE, 7, b"7" * 32))
    for late in (6, 5, 6, 7):
        first.advance(Mark(STORE, late, b"6" * 32))

    assert first.read() == second.read() == Mark(STORE, 7, b"7" * 32)
    first.close()
    second.close()


def test_every_torn_write_leaves_the_mark_before_it(tmp_path):
    """The slot being written is never the one that holds the newest mark."""
    path = tmp_path / "anchor"
    anchor = Anchor(str(path), create=True)
    anchor.begin(Mark(STORE, 0, bytes(32)))
    for pos in range(1, 6):
        before = path.read_bytes()
        anchor.advance(Mark(STORE, pos, bytes([pos]) * 32))
        after = path.read_bytes()
        for cut in range(len(after)):
            torn = tmp_path / "torn"
            torn.write_bytes(after[:cut] + before[cut:])
            looked = Anchor(str(torn), create=False)
            assert looked.read().pos in (pos - 1, pos)
            looked.close()
    anchor.close()


def test_stopped_holder_of_the_lock_does_not_stop_the_others(tmp_path, monkeypatch):
    """A note may be late; a writer must not hang."""
    monkeypatch.setattr(anchor_module, "_PATIENCE_SECONDS", 0.01)
    path = str(tmp_path / "anchor")
    holder, other = Anchor(path, create=True), Anchor(path, create=False)
    holder.begin(Mark(STORE, 0, bytes(32)))
    other.read()
    with holder.creating(0):
        other.advance(Mark(STORE, 1, bytes(32)))
        with pytest.raises(StoreUnavailable, match="another process"), other.creating(0.01):
            pass
        assert other.read().pos == 0

    other.advance(Mark(STORE, 2, bytes(32)))
    assert other.read().pos == 2
    holder.close()
    other.close()


def test_every_changed_bit_of_a_slot_is_noticed(tmp_path):
    """A checksum that misses a bit would let a wrong position through."""
    path = tmp_path / "anchor"
    anchor = Anchor(str(path), create=True)
    anchor.begin(Mark(STORE, 5, b"5" * 32))
    anchor.close()
    whole = path.read_bytes()
    size = len(whole) - SLOTS[1]
    for bit in range(size * 8):
        bad = bytearray(whole)
        for slot in SLOTS:
            bad[slot + bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        looked = Anchor(str(path), create=False)
        with pytest.raises(Unreadable):
            looked.read()
        looked.close()


# --- creation cut off --------------------------------------------------------------------------------------

POINTS = ("mkdir", "chmod", "open", "fchmod", "pwrite", "ftruncate", "fsync", "close", "rename")


def make_and_die_at(place, at, tried):
    """Make a store in a forked child and SIGKILL it right before its n-th act. True: it got through."""
    pid = os.fork()
    if pid == 0:
        count = 0

        def act(name):
            nonlocal count
            count += 1
            if count == at:
                os.write(tried, name.encode() + b"\n")
                os.kill(os.getpid(), signal.SIGKILL)

        def dying(name, real):
            def call(*arguments, **options):
                act(name)
                return real(*arguments, **options)

            return call

        for name in POINTS:
            setattr(os, name, dying(name, getattr(os, name)))

        def traced(cursor, sql, bindings):
            act(sql[:40])
            return True

        apsw.connection_hooks.append(lambda connection: setattr(connection, "exec_trace", traced))
        try:
            store = place.open()
            assert store.append([Writer(store, "r").append(b"1")]) == [None]
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def test_creation_killed_at_any_point_is_continued(tmp_path, place):
    """Before every file operation and every statement: the next process makes the store, and loses nothing."""
    reading, tried = os.pipe()
    at = 0
    while True:
        at += 1
        here = type(place)(tmp_path / f"deep{at}" / "er")
        status = make_and_die_at(here, at, tried)
        if status == 0:
            break
        assert os.WIFSIGNALED(status), f"point {at}"
        _goes_on(here)
        shutil.rmtree(tmp_path / f"deep{at}", ignore_errors=True)
    os.close(tried)
    with os.fdopen(reading) as file:
        names = file.read().splitlines()

    assert len(names) == at - 1 > 40
    assert {"mkdir", "open", "pwrite", "fsync", "rename", "COMMIT", "BEGIN IMMEDIATE"} <= set(names)


def _goes_on(here):
    """What a killed creator left is either nothing yet, or a store; never an error."""
    try:
        store = here.open(create=False)
    except NotFound:
        store = here.open(create=True)
    head = store.read("r").head
    if head is None:
        assert store.append([Writer(store, "r").append(b"1")]) == [None]
    assert_whole(store, "r", 1)
    left = {file.name for file in here.path.parent.iterdir()}
    store.close()
    assert left <= {"runs.db", "runs.db-wal", "runs.db-shm", "runs.db-anchor"}
    assert here.path.stat().st_mode & 0o777 == 0o600


def test_store_is_not_new_after_its_first_record_even_if_power_fails(place, monkeypatch):
    """The note of the first record is synced: an anchor that says zero allows a new start."""
    synced = []
    store = place.open()
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")) or real(fd))
    writer = Writer(store, "r")

    store.append([writer.append(b"1")])
    store.append([writer.append(b"2")])

    assert synced == [str(place.anchor)]


def test_half_made_database_of_a_killed_creator_is_not_used(place):
    """What was being built under another name is built again."""
    place.open().close()
    place.path.unlink()
    place.wal.unlink()
    (place.path.parent / "runs.db-new").write_bytes(b"half")
    (place.path.parent / "runs.db-new-journal").write_bytes(b"half")

    store = place.open()

    assert store.append([Writer(store, "r").append(b"1")]) == [None]
    assert place.said == [f"created store {place.path}"] * 2
    assert sqlite_file.anchor_path(str(place.path)) == str(place.anchor)


@pytest.mark.parametrize("gone", [("",), ("", "-anchor"), ("", "-wal"), ("", "-anchor", "-shm")])
def test_command_that_makes_room_for_a_new_store_works_as_pasted(place, gone):
    """Whoever lost the database has a bad day already: one command, with the files that are there and no others."""
    copy = _killed(place)
    for suffix in gone:
        Path(str(copy.path) + suffix).unlink(missing_ok=True)
    with pytest.raises(JournalRegressed) as refused:
        copy.open()
    (command,) = [do for _, do in refused.value.cures if do.startswith("mkdir ")]

    subprocess.run(["sh", "-c", command], check=True, capture_output=True)

    copy.open().close()
    assert copy.said == [f"created store {copy.path}"]


def test_doctor_promises_no_new_store_while_an_old_log_is_in_the_way(place):
    """An anchor that somebody made by trying is no unfinished store."""
    copy = _killed(place)
    copy.path.unlink()
    copy.anchor.unlink()
    with pytest.raises(JournalRegressed):
        copy.open()

    (found,) = probe.before_opening(str(copy.path))

    assert "start a run" not in found.do


def _killed(place):
    """The files of a store whose process was killed: its log is still there."""
    store = place.open()
    writer = Writer(store, "r")
    for n in range(5):
        store.append([writer.append(b'{"n":%d}' % n)])
    copy = place.copy_to(place.path.parent / "killed")
    store.close()
    return copy
