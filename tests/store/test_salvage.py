"""A database with damaged pages is built anew from what can be read; no run vanishes, and nothing is made up."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
from pathlib import Path

import apsw
import pytest

from surefoot.core.parts import cut
from surefoot.core.seal import Sealer, verify
from surefoot.errors import JournalCorrupt, JournalRegressed, SchemaMismatch, StoreUnavailable, UsageError
from surefoot.store.contract import RESERVED, Conflict, Head, RunQuery
from surefoot.store.sqlite import files as sqlite_file
from surefoot.store.sqlite.damaged_reader import LOST_HEAD
from surefoot.store.sqlite.salvage import rebuild
from surefoot.store.sqlite.store import SqliteStore
from surefoot.testing.conformance import Writer, assert_whole, index_row
from tests.store.conftest import Place

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
def damaged(request, tmp_path):
    """Copies of the store (closed, if no other is named) with other bytes in places."""

    def make(*places: tuple[int, bytes], name: str = "runs.db", whole=None):
        whole = whole or request.getfixturevalue("closed")
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
        return {run: store.read(run).records for run in RUNS}, {
            n: p.body for n, p in store.parts(store.part_ids()).items()
        }
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
        except (JournalCorrupt, UsageError, SchemaMismatch):
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


def blocks(size, length, *, seed, count=1000):
    """Zeroes or garbage, in every block or in a sample."""
    chance = random.Random(seed)
    offsets = range(0, size, length)
    for offset in offsets if len(offsets) <= count else sorted(chance.sample(offsets, count)):
        yield offset, bytes(length) if chance.random() < 0.5 else chance.randbytes(length)


def test_any_damaged_page_leaves_every_run_and_nothing_new(damaged, closed):
    """Each page in turn, zeroed or garbage: whatever the disk lost, no run may start afresh in silence."""
    tally = sweep(damaged, closed, blocks(closed.path.stat().st_size, PAGE, seed=1))

    assert tally["refused"] <= 4, tally  # the first page, and those whose loss leaves the names of runs in doubt
    assert tally["rebuilt"] > 25, tally


def test_any_damaged_sector_leaves_every_run_and_nothing_new(damaged, closed):
    """Half a page may look sound to SQLite and give rows of nulls, or none."""
    tally = sweep(damaged, closed, blocks(closed.path.stat().st_size, 512, seed=2, count=100))

    assert tally["refused"] <= 8, tally
    assert tally["left"] > tally["rebuilt"] * sum(LENGTHS.values()) * 0.9, tally


@pytest.mark.parametrize("name", ["runs.db", "runs.db-wal"])
def test_damage_beside_a_log_leaves_every_run_and_nothing_new(damaged, killed, name):
    """After a kill the newest pages are in the log; a log that breaks off is an older state, and is refused."""
    size = (killed.path.parent / name).stat().st_size

    tally = sweep(damaged, killed, blocks(size, 512, seed=3, count=50), name)

    assert tally["rebuilt"] > 10, tally
    assert name == "runs.db" or tally["refused"] > 10, tally


def ask(path, question, *values):
    """Look into a copy: whoever closes a database last folds its log into it."""
    folder = path.parent.parent / "asked"
    shutil.copytree(path.parent, folder)
    connection = apsw.Connection(str(folder / path.name))
    answer = connection.execute(question, values).get
    connection.close()
    shutil.rmtree(folder)
    return answer


def root(path, name):
    """Where the root page of a table or an index begins."""
    return (ask(path, "SELECT rootpage FROM sqlite_schema WHERE name = ?", name) - 1) * PAGE


def leaf(path, number):
    """Where the so-manieth page of the table of records begins (from the end, if negative)."""
    return (
        ask(
            path,
            "SELECT pageno FROM dbstat WHERE name = 'entries' AND pagetype = 'leaf' ORDER BY "
            + ("path LIMIT 1 OFFSET ?" if number >= 0 else "path DESC LIMIT 1 OFFSET -1 - ?"),
            number,
        )
        - 1
    ) * PAGE


def change(path, *statements):
    """Change a closed store behind its back."""
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def test_lost_newest_records_do_not_make_positions_go_back(damaged, closed):
    """A position that is given twice is one that the anchor takes for an older history."""
    path = damaged((leaf(closed.path, -1), bytes(PAGE)))

    found = rebuild(str(path))

    assert found.missing.keys() <= set(RUNS)
    assert found.missing
    assert found.complete
    store = SqliteStore.open(str(path), create=True, url="x")
    assert store.changes() == sum(LENGTHS.values()) + 1
    second = store.read("second")
    assert second.head.seq == 60 > len(second.records)
    assert_whole(store, f"{RESERVED}salvaged/{sum(LENGTHS.values())}", 1)
    assert {item.run for item in store.runs(RunQuery())} == set(RUNS)
    store.close()


def test_records_in_and_beyond_the_damage_are_told_apart(damaged, closed):
    """What is whole beyond a hole is evidence for effects that happened."""
    offset = leaf(closed.path, 2)
    path = damaged((offset, bytes(PAGE)))

    found = rebuild(str(path))

    (gap,) = found.unread
    assert gap.table == "entries"
    assert offset in [bad.offset for bad in found.pages]
    store = SqliteStore.open(str(path), create=False, url="x")
    positions = [pos for pos, _ in store.scan(0, 1000)]
    assert positions == [n for n in range(1, 85) if not gap.first <= n <= gap.last]
    store.close()


def test_evidence_is_never_overwritten(damaged, closed):
    """Each attempt keeps what it found."""
    path = damaged((leaf(closed.path, -1), bytes(PAGE)))
    before = path.read_bytes()

    names = [rebuild(str(path)).evidence for _ in range(3)]

    assert names == [(f"{path}-damaged-{n}",) for n in (1, 2, 3)]
    assert Path(names[0][0]).read_bytes() == before


def test_log_is_kept_and_is_not_laid_over_the_new_database(damaged, killed):
    """A log fits any database of its name: the old pages would come back, damage and all."""
    path = damaged((5000, b"garbage"), whole=killed)
    log = path.with_name("runs.db-wal").read_bytes()
    assert log

    found = rebuild(str(path))

    assert found.evidence == (f"{path}-damaged-1", f"{path}-damaged-1-wal")
    assert Path(found.evidence[1]).read_bytes() == log
    assert path.with_name("runs.db-wal").stat().st_size == 0


def test_file_mode_is_kept(damaged, closed):
    """Another user of the store must not be shut out by a repair, nor let in."""
    path = damaged((leaf(closed.path, -1), bytes(PAGE)))
    path.chmod(0o640)

    rebuild(str(path))

    assert path.stat().st_mode & 0o777 == 0o640


# --- names -----------------------------------------------------------------------------------------------


def test_lost_heads_are_known_by_their_index_and_no_run_can_start_afresh(damaged, closed):
    """Without a head row, creating the run again would succeed wherever its first entry is lost."""
    change(
        closed.path, "DELETE FROM entries WHERE run = 'first' AND seq < 4", "DELETE FROM entries WHERE run = 'third'"
    )
    path = damaged((root(closed.path, "heads"), bytes(PAGE)))

    found = rebuild(str(path))

    assert found.complete
    assert sorted(found.headless) == sorted(RUNS)
    store = SqliteStore.open(str(path), create=True, url="x")
    assert store.read("third") == type(store.read("third"))([], Head(6, LOST_HEAD))
    assert store.read("first").head == Head(0, LOST_HEAD)
    for run in RUNS:
        assert store.append([Writer(store, run).append(b"{}")]) == [Conflict(run)]
    store.close()


def test_unreadable_list_of_runs_is_refused_unless_the_loss_is_accepted(damaged, closed):
    """A run that nobody can name would silently start afresh."""
    change(closed.path, "DELETE FROM entries WHERE run = 'third'", "DELETE FROM runs WHERE run = 'third'")
    places = [(root(closed.path, name), bytes(PAGE)) for name in ("heads", "sqlite_autoindex_heads_1")]
    path = damaged(*places)
    before = path.read_bytes()

    with pytest.raises(JournalCorrupt, match="runs may have vanished") as refused:
        rebuild(str(path))

    assert "--accept-loss" in str(refused.value)
    assert path.read_bytes() == before
    found = rebuild(str(path), accept_incomplete=True)
    assert not found.complete
    store = SqliteStore.open(str(path), create=False, url="x")
    assert set(store.names()) == {"first", "second"}
    assert len(store.read("second").records) == 60
    store.close()


def test_name_that_is_damaged_in_one_place_is_found_in_another(damaged, closed):
    """One letter in the row of a head, one in its index: never a run of another name, never one less."""
    whole = closed.path.read_bytes()
    records, parts = contents(closed.path)
    for name in ("heads", "sqlite_autoindex_heads_1"):
        start = root(closed.path, name)
        at = whole.index(b"first", start, start + PAGE)
        path = damaged((at, b"farst"))
        rebuild(str(path))
        assert check_rebuilt(path, records, parts)[0] == sum(LENGTHS.values())


def test_rows_of_wrong_types_are_set_aside_as_they_are(damaged, closed):
    """They are no records, but they may be evidence."""
    change(closed.path, "UPDATE entries SET body = 5 WHERE run = 'first' AND seq = 3",
           "UPDATE entries SET seal = x'0102' WHERE run = 'second' AND seq = 4",
           "UPDATE entries SET epoch = CAST(x'ff' AS TEXT) WHERE run = 'third' AND seq = 5")  # fmt: skip
    path = damaged()

    found = rebuild(str(path))

    assert found.misfits == 3
    assert found.missing == {"first": 1, "second": 1, "third": 1}
    connection = apsw.Connection(str(path))
    aside = connection.execute("SELECT run, seq, epoch, body, seal FROM quarantine ORDER BY run").fetchall()
    connection.close()
    assert [(run, seq) for run, seq, *_ in aside] == [("first", 3), ("second", 4), ("third", 5)]
    assert (aside[0][3], aside[1][4], aside[2][2]) == (5, b"\x01\x02", b"\xff")


# --- what is not salvage's to decide -----------------------------------------------------------------------


def test_older_database_is_not_made_to_look_complete(damaged, killed):
    """A lost log is a lost tail of every run: only a person can accept that, and effects are then in doubt."""
    path = damaged((0, b""), whole=killed)
    path.with_name("runs.db-wal").unlink()

    with pytest.raises(JournalCorrupt, match="which the anchor knows"):
        rebuild(str(path))

    rebuild(str(path), accept_incomplete=True)
    with pytest.raises(JournalRegressed):
        SqliteStore.open(str(path), create=False, url="x")


def test_another_history_is_not_made_to_look_right(damaged, closed, tmp_path):
    """Two stores went on from one copy. The anchor of the one does not vouch for the other."""
    ours, theirs = (Place(tmp_path / name) for name in ("ours", "theirs"))
    for place, body in ((ours, b'{"a":1}'), (theirs, b'{"b":1}')):
        shutil.copytree(closed.path.parent, place.path.parent)
        store = place.open()
        store.append([Writer(store, "first", head=store.read("first").head).append(body)])
        store.close()
    shutil.copy(theirs.anchor, ours.anchor)

    with pytest.raises(JournalCorrupt, match="which the anchor knows"):
        rebuild(str(ours.path))


def test_missing_anchor_is_refused(damaged, closed):
    """Nobody can say whether what is left is all there was."""
    path = damaged((leaf(closed.path, -1), bytes(PAGE)))
    path.with_name("runs.db-anchor").unlink()

    with pytest.raises(JournalCorrupt, match="no anchor"):
        rebuild(str(path))


def test_lost_description_of_tables_is_refused(damaged):
    """Without its first page nothing can be found; a backup can."""
    path = damaged((0, bytes(PAGE)))

    with pytest.raises(JournalCorrupt, match="Nothing was changed") as refused:
        rebuild(str(path))

    assert "put it back" in str(refused.value)


def test_store_of_which_no_record_is_left_is_refused(damaged, closed):
    """The root of all records is gone: a backup helps, an empty shell does not."""
    path = damaged((root(closed.path, "entries"), bytes(PAGE)))

    with pytest.raises(JournalCorrupt, match="not one record can be read"):
        rebuild(str(path))

    assert rebuild(str(path), accept_incomplete=True).headless == ()


def test_what_is_no_store_is_refused(tmp_path):
    """Somebody else's database is not ours to rebuild."""
    other = tmp_path / "other.db"
    connection = apsw.Connection(str(other))
    connection.execute("CREATE TABLE t (x)")
    connection.close()

    with pytest.raises(UsageError, match="another program"):
        rebuild(str(other))
    with pytest.raises(UsageError):
        rebuild(str(tmp_path / "missing.db"))
    assert sorted(file.name for file in tmp_path.glob("*.db*")) == ["other.db"]


def test_newer_format_is_refused(damaged, closed):
    """What a newer version keeps there would be left behind."""
    change(closed.path, "UPDATE meta SET value = 9 WHERE key = 'format'")

    with pytest.raises(SchemaMismatch, match="format 9"):
        rebuild(str(damaged()))


# --- other processes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("joins", ["store.worker", "None"])
def test_store_that_somebody_has_open_is_left_alone(closed, joins, monkeypatch):
    """A process that goes on writing into the file that was moved away loses everything it writes."""
    child = closed.child(f"store = open_here(create=False); {joins}; print('open', flush=True); sys.stdin.read()")
    assert child.stdout.readline() == "open\n"
    before = closed.path.read_bytes()
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)

    with pytest.raises(StoreUnavailable, match="End th"):
        rebuild(str(closed.path))

    assert closed.path.read_bytes() == before
    child.communicate()
    assert rebuild(str(closed.path)).complete


def test_store_that_this_process_has_open_is_left_alone(place, monkeypatch):
    """Its own handle would go on with the old file."""
    fill(place)

    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    with pytest.raises(StoreUnavailable):
        rebuild(str(place.path))


REBUILD_AND_WAIT = """
from surefoot.store.sqlite import salvage
rename = os.rename
def renamed(*names):
    print("about to", flush=True)
    sys.stdin.readline()
    rename(*names)
os.rename = renamed
print(salvage.rebuild(path).complete, flush=True)
"""
OPEN_AND_WRITE = """
from surefoot.store.sqlite import files as sqlite_file
check = sqlite_file._check
def checked(*args, **more):
    print("connected", flush=True)
    return check(*args, **more)
sqlite_file._check = checked
try:
    store = open_here(create=True)
    writer = Writer(store, "first", head=store.read("first").head)
    print(store.append([writer.append(b"late")]))
except StoreUnavailable as error:
    print("refused:", error)
"""


def test_process_that_waited_does_not_write_into_the_file_that_was_moved_away(closed):
    """It opened the old file, and got its turn when the new one was in place."""
    builder = closed.child(REBUILD_AND_WAIT)
    assert builder.stdout.readline() == "about to\n"
    late = closed.child(OPEN_AND_WRITE)
    assert late.stdout.readline() == "connected\n"

    said, _ = builder.communicate("go\n")

    assert said == "True\n"
    assert late.communicate()[0].startswith("refused:")
    records, _ = contents(closed.path)
    assert [len(records[run]) for run in RUNS] == list(LENGTHS.values())
    old = apsw.Connection(f"{closed.path}-damaged-1")
    assert old.execute("SELECT count(*) FROM entries WHERE body = CAST('late' AS BLOB)").get == 0
    old.close()


# --- crashes --------------------------------------------------------------------------------------------------

DIE_AT = """
from surefoot.store.sqlite import files as sqlite_file
from surefoot.store.sqlite import salvage
left = int(sys.argv[2])
def counted(module, name):
    original = getattr(module, name)
    def call(*args, **more):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **more)
    setattr(module, name, call)
for name in ("open", "unlink", "link", "rename", "fsync", "fchmod"):
    counted(os, name)
for name in ("_empty_log", "_keep_copy", "_make_empty", "_free_name"):
    counted(salvage, name)
salvage.rebuild(path)
"""


def test_kill_between_any_two_steps_leaves_the_old_or_the_new_database(damaged, killed):
    """Rebuilding is done on bad days: power may fail in the middle of it, and again."""
    offset = leaf(killed.path, 1)
    path = damaged((offset, bytes(PAGE)), whole=killed)
    assert state_of(path) is None
    rebuild(str(path))
    expected = state_of(path)

    step, old, new = 0, 0, 0
    while True:
        step += 1
        path = damaged((offset, bytes(PAGE)), whole=killed)
        place = Place(path.parent)
        child = place.child(DIE_AT, str(step))
        child.communicate()
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL
        done = state_of(path)
        assert done in (None, expected), f"step {step}"
        old, new = old + (done is None), new + (done is not None)
        rebuild(str(path))
        assert state_of(path) == expected, f"step {step}"
        assert not list(path.parent.glob("*-salvage*"))
        place.clear_up()

    assert old > 8, old
    assert new >= 1, new


def state_of(path):
    """All records with their positions and heads, of a store that opens; else that it does not."""
    try:
        store = SqliteStore.open(str(path), create=False, url="x")
        found = [(pos, record) for pos, record in store.scan(0, 1000) if not record.run.startswith(RESERVED)]
        return found, [store.read(run).head for run in RUNS], store.names()
    except JournalCorrupt:
        return None
    finally:
        if "store" in locals():
            store.close()


GARBAGE = random.Random(3).randbytes(40 * PAGE)


def refusal(path):
    """What those are told who open the store and, where that is the cure, have it built anew."""
    with pytest.raises(JournalCorrupt) as refused:
        SqliteStore.open(str(path), create=True, url="x").close()
    if "surefoot repair ID" not in dict(refused.value.cures).values():
        return refused.value
    with pytest.raises(JournalCorrupt) as refused:
        rebuild(str(path))
    return refused.value


@pytest.mark.parametrize(
    "content",
    [GARBAGE, bytes(len(GARBAGE)), b"short", b"SQLite format 3\0" + GARBAGE],
    ids=["garbage", "zeros", "short", "garbage behind the first bytes"],
)
def test_database_of_which_nothing_is_left_is_as_good_as_missing(damaged, content):
    """Nothing can be adopted or built anew: what helps is the command that makes room for a new store."""
    path = damaged()
    path.write_bytes(content)

    found = refusal(path)
    subprocess.run(dict(found.cures)["start anew?"], shell=True, check=True)
    SqliteStore.open(str(path), create=True, url="x").close()

    assert Path(f"{path}-lost-1", "runs.db").read_bytes() == content


@pytest.mark.parametrize("kept", [range(1, 100), [2], [4]], ids=["all but the first page", "one page", "another page"])
def test_database_is_not_given_up_while_a_page_is_left(damaged, closed, kept):
    """Rows that can still be read may be the only record of a payment."""
    content = closed.path.read_bytes()
    pages = {number: content[number * PAGE : (number + 1) * PAGE] for number in kept}
    path = damaged((0, GARBAGE), *((number * PAGE, page) for number, page in pages.items()))

    assert "start anew?" not in dict(refusal(path).cures)


def test_database_is_not_given_up_while_its_log_has_a_page(damaged, killed):
    """The newest records are in the log, and only there."""
    path = damaged((0, GARBAGE), whole=killed)
    log = path.with_name("runs.db-wal")
    with log.open("r+b") as file:
        file.write(b"no longer the beginning of a log")

    assert "start anew?" not in dict(refusal(path).cures)
