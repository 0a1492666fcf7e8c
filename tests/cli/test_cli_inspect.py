"""`surefoot inspect`: what is in a file that may be damaged, said without believing it and without touching it."""

from __future__ import annotations

import os
import pty
import random
import shutil
import subprocess
import tempfile

import apsw
import pytest

import surefoot as sf
from surefoot.store.open import close_all
from tests.cli.conftest import command

PAGE = 4096


@sf.step
def think(n: int) -> str:
    return f"thought {n} " + "and so on " * (500 if n % 10 == 0 else 1)


@sf.effect
def act(n: int) -> int:
    return n


@sf.workflow
def long(count: int) -> int:
    return sum(act(n) for n in range(count) if think(n))


@pytest.fixture
def store(own_folder):
    """Three runs, one of them long and with large values; closed."""
    long.run("before", 2)
    long.run("long", 20)
    long.run("after", 2)
    close_all()
    return own_folder / ".surefoot" / "runs.db"


def garble(path, needle, replacement):
    """Change bytes of a record in the database."""
    data = path.read_bytes()
    at = data.index(needle)
    path.write_bytes(data[:at] + replacement + data[at + len(replacement) :])
    return at


def state(folder):
    return {
        str(file): (file.read_bytes() if file.is_file() else b"", file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
    }


def test_sound_store_is_told_run_by_run(cli, store):
    """Before a repair one wants to know what a healthy one looks like."""
    ended = cli("inspect", str(store))

    assert ended.code == 0, ended.out
    assert "a surefoot store, format 1" in ended.out
    assert "the journal reaches it" in ended.out
    assert "run before: 9 entries found, all hold" in ended.out
    assert ended.out.splitlines()[-1].startswith("sound: 3 journals")


def test_store_in_force_is_meant_if_no_path_is_given(cli, store):
    """As with every other verb."""
    assert cli("inspect").out == cli("inspect", "sqlite:///.surefoot/runs.db").out == cli("inspect", str(store)).out


def test_bad_entry_is_named_with_its_bytes_and_what_is_whole_beyond(cli, store):
    """Which record, which bytes, what is still valid (R18)."""
    at = garble(store, b'"act#10"', b'"act#1X"')

    ended = cli("inspect", str(store), "--json")

    assert ended.code == 4
    journals = {one["name"]: one for one in ended.json["journals"]}
    bad = journals["long"]["bad"]
    assert bad["why"].startswith("its seal does not hold")
    assert bad["place"]["file"] == "runs.db"
    assert bad["place"]["offset"] <= at < bad["place"]["offset"] + 500
    assert bad["place"]["page"] == at // PAGE + 1
    assert journals["long"]["valid"] == bad["seq"] - 1
    assert journals["long"]["beyond"] == journals["long"]["head"] - bad["seq"]
    assert journals["before"]["bad"] is None
    text = cli("inspect", str(store)).out
    assert f"entry {bad['seq']} is bad: its seal does not hold" in text
    assert "surefoot repair long" in text


def test_damaged_checkpoint_is_told_what_load_does_and_not_to_repair_it(cli, own_folder):
    """`surefoot repair` takes runs; a command that cannot work costs whoever types it at night their trust."""
    saved = sf.Checkpoint("nightly")
    for n in range(3):
        saved.save({"n": n})
    close_all()
    store = own_folder / ".surefoot" / "runs.db"
    garble(store, b'{"n":2}', b'{"n":7}')

    ended = cli("inspect", str(store))

    assert ended.code == 4
    assert "checkpoint nightly: 3 entries found, 2 hold" in ended.out
    assert "load() falls back to the newest generation that is whole, and says so" in ended.out
    assert "surefoot repair" not in ended.out
    assert sf.Checkpoint("nightly").load() == {"n": 1}


def test_beside_a_damaged_checkpoint_it_is_the_run_that_is_to_be_repaired(cli, store):
    """The journals of checkpoints come first in the list."""
    sf.Checkpoint("nightly").save({"night": 1})
    close_all()
    garble(store, b'{"night":1}', b'{"night":7}')
    garble(store, b'"act#10"', b'"act#1X"')

    ended = cli("inspect", str(store))

    assert "load() falls back" in ended.out
    assert "surefoot repair long --store" in ended.out


def test_damaged_pages_under_a_checkpoint_are_mended_by_a_repair_of_any_run(cli, store):
    """Then it is the file that is damaged, and that is built anew whichever run is named."""
    sf.Checkpoint("nightly").save({"night": 1})
    close_all()
    garble(store, b'{"night":1}', b'{"night":7}')
    lose(store, leaf(store, "runs"))

    ended = cli("inspect", str(store))

    assert "damaged: 1 of 4 journals" in ended.out
    assert "surefoot repair ID --store" in ended.out


def leaf(path, table, nth=0):
    connection = apsw.Connection(str(path))
    page = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET ?", (table, nth)
    ).get
    connection.close()
    return page


def lose(path, page):
    data = bytearray(path.read_bytes())
    data[(page - 1) * PAGE : page * PAGE] = bytes(PAGE)
    path.write_bytes(data)


def test_unreadable_page_is_named_with_its_offset(cli, store):
    """For whoever wants to look with other tools."""
    page = leaf(store, "entries", 1)
    lose(store, page)

    ended = cli("inspect", str(store))

    assert ended.code == 4
    assert f"page {page} (byte {(page - 1) * PAGE:,})" in ended.out
    assert "unreadable   entries " in ended.out
    assert "it is missing, the next one found is" in ended.out
    assert "are whole by themselves" in ended.out


def test_lost_first_page_still_shows_every_run(cli, store):
    """SQLite says 'file is not a database'; all but the description of the tables is there."""
    data = store.read_bytes()
    store.write_bytes(bytes(PAGE) + data[PAGE:])

    ended = cli("inspect", str(store))

    assert ended.code == 4
    assert "page 1, which describes the tables, is damaged" in ended.out
    assert "run before: 9 entries found, all hold" in ended.out


def test_cut_file_shows_what_is_left(cli, store):
    """A copy that broke off: SQLite would refuse all of it."""
    data = store.read_bytes()
    store.write_bytes(data[: len(data) // 2])

    ended = cli("inspect", str(store))

    assert ended.code == 4
    assert ended.out.count(f"the file is shorter than it says: {len(data) // 2} bytes of {len(data)}") == 1


def test_damaged_and_missing_parts_are_named(cli, store):
    """A value that is kept by parts may be gone although every entry is whole."""
    connection = apsw.Connection(str(store))
    connection.execute("UPDATE parts SET body = x'00' WHERE n = 1; DELETE FROM parts WHERE n = 2")
    connection.close()

    ended = cli("inspect", str(store), "--json")

    assert ended.code == 4
    (bad,) = [one for one in ended.json["journals"] if one["name"] == "long"]
    assert bad["bad"] is None
    assert bad["parts_bad"] >= 2
    assert any("missing" in part["why"] for part in bad["parts"])


def test_quarantined_entries_are_counted(cli, store):
    """What was set aside is kept for inspection, so inspection shows it."""
    garble(store, b'"act#10"', b'"act#1X"')
    assert cli("repair", "long", "--yes").code == 0
    close_all()

    ended = cli("inspect", str(store), "--json")

    assert ended.code == 0, ended.out
    assert {one["name"]: one["quarantined"] > 0 for one in ended.json["journals"]}["long"]


def test_store_behind_its_anchor_is_told(cli, store):
    """An old copy that looks healthy is how a payment is made twice."""
    older = store.read_bytes()
    long.run("more", 1)
    close_all()
    store.write_bytes(older)

    ended = cli("inspect", str(store))

    assert ended.code == 4
    assert "records are lost" in ended.out
    assert "surefoot adopt" in ended.out


def test_log_of_a_killed_process_is_read_too(cli, shell, app):
    """After a kill the newest entries are there and nowhere else."""
    shell("run", "app:notify", "--id", "t", '["Ada", "Bob"]', DIE_AFTER_SENDING_TO="Bob")
    log = app / ".surefoot" / "runs.db-wal"
    assert log.stat().st_size

    ended = cli("inspect", str(log.with_name("runs.db")))

    assert ended.code == 0, ended.out
    assert "in its log" in ended.out
    assert "run t: " in ended.out


def test_nothing_beside_the_original_is_touched(cli, store, monkeypatch, tmp_path):
    """It is evidence. The copy is private and gone afterwards."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    garble(store, b'"act#10"', b'"act#1X"')
    before = state(store.parent)

    cli("inspect", str(store))

    assert state(store.parent) == before
    assert list(scratch.iterdir()) == []


def test_anchor_shows_both_slots(cli, store):
    """One bad slot heals by itself; a person may still want to know."""
    anchor = store.with_name("runs.db-anchor")
    assert cli("inspect", str(anchor)).code == 0
    data = bytearray(anchor.read_bytes())
    data[20] ^= 1
    anchor.write_bytes(data)

    ended = cli("inspect", str(anchor))

    assert ended.code == 4
    assert "its first slot is damaged" in ended.out
    assert "its second slot knows record" in ended.out


def test_checkpoint_files_are_judged_one_by_one(cli, own_folder):
    """Which generation can still be loaded, and what is wrong with the newest?"""
    saved = sf.Checkpoint("nightly", store="file:shelf")
    for n in range(3):
        saved.save({"n": n})
    folder = own_folder / "shelf"
    assert cli("inspect", str(folder)).code == 0
    newest = folder / "nightly" / "3.json"
    newest.write_bytes(newest.read_bytes()[:-30])

    for path in (folder, folder / "nightly", newest, "file:shelf"):
        ended = cli("inspect", str(path))
        assert ended.code == 4, ended
        assert "generation 3 is damaged" in ended.out
    assert cli("inspect", str(folder / "nightly" / "2.json")).code == 0


def other_database(path):
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE t (x)")
    connection.close()


@pytest.mark.parametrize(
    ("make", "code", "says"),
    [
        (lambda path: path.write_text("Dear diary\n"), 2, "a text file"),
        (lambda path: path.write_bytes(b""), 2, "an empty file"),
        (lambda path: path.write_bytes(bytes(range(256)) * 40), 2, "some other program"),
        (lambda path: path.mkdir(), 2, "a directory"),
        (str, 2, "there is nothing at"),
        (other_database, 2, "of another program"),
        (os.mkfifo, 2, "no plain file"),
        (lambda path: path.symlink_to(path), 1, "cannot be read"),
    ],
)
def test_what_is_not_ours_gets_one_clear_sentence(cli, own_folder, make, code, says):
    """Never a traceback from the depths."""
    path = own_folder / "it\x1b[31m"
    make(path)

    ended = cli("inspect", str(path))

    assert ended.code == code
    assert says in ended.err
    assert "\x1b" not in ended.err
    assert len(ended.err.splitlines()) == 1
    assert ended.out == ""


def test_folder_of_a_store_is_pointed_at_the_store(cli, store):
    """People name the folder."""
    ended = cli("inspect", str(store.parent))

    assert ended.code == 2
    assert f"did you mean {store}?" in ended.err


@pytest.mark.parametrize("left", [None, b"", b"Dear diary\n"])
def test_emptied_or_missing_store_is_damage_not_a_stranger(cli, store, left):
    """The anchor beside it says that there was one."""
    store.unlink()
    if left is not None:
        store.write_bytes(left)

    assert cli("inspect", str(store)).code == 4


def test_other_database_in_the_place_of_a_store_is_damage(cli, store):
    """It is not ours, but what was here was."""
    store.unlink()
    other_database(store)

    ended = cli("inspect", str(store))

    assert ended.code == 4
    assert "another program lies where a store was" in ended.err


def test_newer_format_is_told(cli, store):
    """That is no damage: another version of surefoot reads it."""
    connection = apsw.Connection(str(store))
    connection.execute("UPDATE meta SET value = 9 WHERE key = 'format'")
    connection.close()

    ended = cli("inspect", str(store))

    assert ended.code == 3
    assert "format 9" in ended.err


def test_file_without_permission_is_told(cli, store, monkeypatch):
    """It may be perfectly sound: who asked may not look."""
    real = os.open

    def denied(path, *more, **options):
        if path == str(store):
            raise PermissionError(13, "Permission denied")
        return real(path, *more, **options)

    monkeypatch.setattr(os, "open", denied)

    ended = cli("inspect", str(store))

    assert ended.code == 1
    assert "Permission denied" in ended.err


def test_names_cannot_act_on_the_terminal(cli, store, hostile):
    """A damaged name may hold anything."""
    connection = apsw.Connection(str(store))
    for table in ("heads", "entries", "runs"):
        connection.execute(f"UPDATE {table} SET run = ? WHERE run = 'after'", (hostile,))
    connection.close()
    garble(store, b'"act#10"', b'"act#1X"')

    text, facts = cli("inspect", str(store)), cli("inspect", str(store), "--json")

    assert "\x1b" not in text.out + facts.out
    assert "\\x1b[31mred" in text.out
    assert hostile in [one["name"] for one in facts.json["journals"]]


def test_random_damage_never_gives_a_traceback(cli, store):
    """Whatever the disk made of it, there is an answer."""
    chance = random.Random(5)
    whole = store.read_bytes()
    codes = set()
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            size = chance.choice((1, 64, 512, 4096))
            at = chance.randrange(len(data))
            data[at : at + size] = chance.randbytes(size)
        store.write_bytes(data[: len(whole)])
        codes.add(cli("inspect", str(store), "--json").code)

    assert codes <= {0, 3, 4}


def test_terminal_gets_clean_output(store):
    """The line that tells how far it is leaves nothing behind."""
    parent, child = pty.openpty()
    ended = subprocess.run(
        command("inspect", str(store)), stdout=subprocess.PIPE, stderr=child, text=True, check=False, cwd=store.parent
    )
    os.close(child)
    os.close(parent)

    assert ended.returncode == 0
    assert "\r" not in ended.stdout


def test_export_is_recognised(cli, store):
    """Somebody was sent a file and wonders what it is."""
    assert cli("export", "long", "--output", "long.sf").code == 0

    ended = cli("inspect", "long.sf")

    assert ended.code == 0
    assert "run long, exported" in ended.out


def as_link(path):
    path.symlink_to("/dev/zero")


def as_pipe(path):
    os.mkfifo(path)


def as_sparse(path):
    """More bytes than there is room for, none of them on the disk."""
    with path.open("wb") as file:
        file.truncate(shutil.disk_usage(tempfile.gettempdir()).free + 2**30)


@pytest.mark.parametrize("suffix", ["-wal", "-anchor"])
@pytest.mark.parametrize(("hostile", "said"), [(as_link, "is a link"), (as_pipe, "is a link"), (as_sparse, "no room")])
def test_what_is_no_plain_file_of_its_size_is_not_copied(cli, store, suffix, hostile, said):
    """Whoever is sent a folder to look into must not get a full disk, or wait for ever."""
    beside = store.with_name(store.name + suffix)
    beside.unlink(missing_ok=True)
    hostile(beside)
    before = sorted(os.listdir(tempfile.gettempdir()))

    ended = cli("inspect", str(store))

    assert ended.code == 1
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1
    left = set(os.listdir(tempfile.gettempdir())) - set(before)
    assert not [name for name in left if name.startswith("surefoot-inspect-")]


def test_store_that_is_larger_than_the_room_for_a_copy_is_refused(cli, store):
    """Only its length is looked at: copying would fill the disk first, and then fail."""
    os.truncate(store, shutil.disk_usage(tempfile.gettempdir()).free + 2**30)

    ended = cli("inspect", str(store))

    assert ended.code == 1
    assert "TMPDIR" in ended.err


def test_store_behind_a_link_is_looked_at_where_it_lies(cli, store, own_folder):
    """Its log and its anchor are there, and not beside the link."""
    (own_folder / "link.db").symlink_to(store)

    assert cli("inspect", "link.db").out == cli("inspect", str(store)).out


def test_folder_of_checkpoints_that_cannot_be_read_is_said_and_not_passed_over(cli, own_folder, monkeypatch):
    """Left out of the list it would count as sound."""
    for name in ("one", "two"):
        sf.Checkpoint(name, store="file:shelf").save({"n": 1})
    real = os.listdir

    def guarded(path):
        if str(path).endswith("two"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "listdir", guarded)

    ended = cli("inspect", str(own_folder / "shelf"))

    assert ended.code != 0
    assert f"{own_folder / 'shelf' / 'two'}: cannot be read: Permission denied" in ended.err
