"""Files and globs: what is seen of them, and that looking never hangs, never reads for ever and never harms."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot import witness
from surefoot.core.entry import ABSENT
from surefoot.core.expectation import Unseen
from surefoot.errors import UsageError
from surefoot.store.anchor import _FILE_BYTES
from surefoot.store.open import close_all, open_store
from surefoot.store.sqlite import files as sqlite_file
from surefoot.store.sqlite import schema
from surefoot.world import globs, hashes, stores
from surefoot.world.base import NotObservable, Pulse
from surefoot.world.paths import as_written, file_part, shown, unshown


def seen(path):
    return witness.file(path).fingerprint()[file_part(path)]


def test_hash_is_the_content_and_says_its_size():
    Path("a").write_text("test")

    assert seen("a") == f"{sha256(b'test').hexdigest()} (4 bytes)"
    assert seen("a") == hashes.of_content(b"test")


def test_effect_can_tell_the_hash_of_a_file_before_it_makes_it():
    """An intent holds what the effect is about to make."""
    Path("a").write_bytes(b"x" * 3_000_001)
    os.chmod("a", 0o750)

    assert seen("a") == hashes.of_content(b"x" * 3_000_001, mode=0o750)
    assert "executable" in seen("a")


@pytest.mark.parametrize("written", ["a", "./a", ".//./a", "a/", "././a//"])
def test_one_file_is_one_part_however_it_is_written(written):
    """What an effect touches and what the workflow watches must meet."""
    assert witness.file(written).name == "file(a)"
    assert witness.file(written).fingerprint() == {"file:a": ABSENT}


def test_paths_are_kept_as_written_otherwise():
    """`a/..` is not `.` where `a` is a link; and what is on record must not depend on where it was recorded."""
    assert as_written("a/../b") == "a/../b"
    assert as_written("//x//y") == "/x/y"
    assert as_written(".") == "."
    assert witness.file(Path("src/a.txt")).name == "file(src/a.txt)"


@pytest.mark.parametrize("path", ["", "a\0b", "~/a", "\ud800", 3, None])
def test_what_cannot_be_a_path_is_refused_at_once(path):
    with pytest.raises(UsageError):
        witness.file(path)


def test_part_of_a_file_is_the_same_in_every_witness():
    """Expectations are kept by part: an effect's own write must be known to the glob that sees it too."""
    Path("src").mkdir()
    Path("src/a").write_text("x")
    Path("src/b").symlink_to("a")
    os.mkfifo("src/c")
    Path("src/d").symlink_to(".")
    alone = {}
    for name in "abcd":
        alone |= witness.file(f"src/{name}").fingerprint()

    assert witness.files("src/*").fingerprint() == alone
    assert witness.files("./src//*").fingerprint() == alone
    assert len(alone) == 4


def test_files_that_are_not_utf8_have_parts_of_their_own():
    r"""A file called \xff and one called by that byte are two."""
    for name in (b"\xff", rb"\xff", b"\\", b"plain"):
        Path(os.fsdecode(name)).write_bytes(name)

    parts = witness.files("*").fingerprint()

    assert parts == {
        r"file:\xff": hashes.of_content(b"\xff"),
        r"file:\\xff": hashes.of_content(rb"\xff"),
        r"file:\\": hashes.of_content(b"\\"),
        "file:plain": hashes.of_content(b"plain"),
    }
    for path in os.listdir():
        rebuilt = witness.from_spec(witness.file(path).spec)
        assert rebuilt.fingerprint().items() <= parts.items()


@given(st.binary(min_size=1, max_size=30))
def test_every_path_comes_back_from_how_it_is_shown(raw):
    path = os.fsdecode(raw)
    assert unshown(shown(path)) == path
    shown(path).encode()


# --- what is no plain file --------------------------------------------------------------------------


def test_fifo_device_and_socket_are_named_not_read():
    """Reading them would wait or go on for ever."""
    os.mkfifo("fifo")
    Path("zero").symlink_to("/dev/zero")

    assert seen("fifo") == "fifo"
    assert seen("/dev/zero") == "character device"
    assert seen("zero") == "character device, link to /dev/zero"


def test_directory_is_no_file_and_the_cure_is_named():
    """`file("src")` would never see a change in it."""
    Path("src/sub").mkdir(parents=True)

    with pytest.raises(NotObservable, match=r"files\(src/\*\*\)"):
        witness.file("src").fingerprint()
    with pytest.raises(NotObservable, match=r"src/\*\*"):
        witness.files("src").fingerprint()
    with pytest.raises(UsageError, match=r"src/\*\*"):
        witness.files("src/")
    assert witness.files("src/*").fingerprint() == {}


def test_link_shows_content_and_where_it_leads():
    Path("a").write_text("x")
    Path("to").symlink_to("a")
    Path("dangling").symlink_to("nowhere")
    Path("round").symlink_to("round")
    Path("folder").symlink_to("/")

    assert seen("to") == f"{hashes.of_content(b'x')}, link to a"
    assert seen("dangling") == "nothing, link to nowhere"
    assert seen("round") == "nothing, link to round"
    assert seen("folder") == "directory, link to /"


def test_path_through_a_file_is_absent():
    Path("a").write_text("x")
    assert seen("a/b") == ABSENT
    assert witness.files("a/*").fingerprint() == {}


def test_unreadable_file_is_not_passed_over(monkeypatch):
    """A glob that leaves out what it may not read would see no change in it."""
    Path("a").write_text("x")
    Path("b").write_text("x")
    real = os.open

    def guarded(path, *rest, **more):
        if path == "b":
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", guarded)

    assert witness.observe_all([witness.files("*")]) == {"files(*)": Unseen("b: permission denied")}


def test_unreadable_folder_is_not_passed_over(monkeypatch):
    """As above: an empty list would be a lie."""
    Path("src/sub").mkdir(parents=True)
    real = os.scandir

    def guarded(path):
        if str(path).startswith("src/sub"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", guarded)

    assert isinstance(witness.observe_all([witness.files("src/**")])["files(src/**)"], Unseen)


def test_name_that_may_not_be_looked_at_is_not_taken_for_missing(monkeypatch):
    Path("src/sub").mkdir(parents=True)
    real = os.lstat

    def guarded(path):
        if path == "src/sub/x":
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "lstat", guarded)

    assert witness.observe_all([witness.files("src/*/x")]) == {"files(src/*/x)": Unseen("src/sub/x: permission denied")}


def test_endless_file_of_unknown_size_is_given_up(monkeypatch):
    """Some files in /proc say they are empty and go on for ever."""
    Path("a").write_bytes(b"")
    monkeypatch.setattr(hashes, "_UNSIZED", 10)
    monkeypatch.setattr(os, "pread", lambda *_: b"more")

    with pytest.raises(NotObservable, match="changes while it is being read"):
        witness.file("a").fingerprint()


def test_files_in_proc_are_read():
    assert seen("/proc/version") == hashes.of_content(Path("/proc/version").read_bytes(), mode=0o444)


# --- change while reading ---------------------------------------------------------------------------


def test_a_borrowed_number_that_became_a_folder_meanwhile_is_read_anew(monkeypatch):
    """Another thread closed the file, and the next folder that was listed got its number."""
    Path("a").write_text("x")
    real, numbers = os.pread, []

    def pread(number, size, offset):
        numbers.append(number)
        if len(numbers) == 1:
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        return real(number, size, offset)

    monkeypatch.setattr(os, "pread", pread)

    assert seen("a") == hashes.of_content(b"x")


def change_while_reading(monkeypatch, times, change):
    """`change(n)` happens after the first chunk of the n-th reading."""
    real, count = os.pread, [0]

    def pread(number, size, offset):
        chunk = real(number, size, offset)
        if offset == 0 and count[0] < times:
            count[0] += 1
            change(count[0])
        return chunk

    monkeypatch.setattr(os, "pread", pread)
    return count


def test_file_that_changes_while_it_is_read_is_read_again(monkeypatch):
    """Half of the old and half of the new is neither."""
    Path("a").write_text("before")
    count = change_while_reading(monkeypatch, 2, lambda n: Path("a").write_text(f"after {n}"))

    assert seen("a") == hashes.of_content(b"after 2")
    assert count == [2]


def test_file_that_is_replaced_while_it_is_read_is_read_again(monkeypatch):
    """An atomic write gives the name to another file; the one being read is history."""

    def replace(n):
        Path("t").write_text(f"new {n}")
        os.replace("t", "a")

    Path("a").write_text("old")
    change_while_reading(monkeypatch, 1, replace)

    assert seen("a") == hashes.of_content(b"new 1")


def test_folder_that_is_replaced_while_a_file_in_it_is_read_is_noticed(monkeypatch):
    """Nothing happens to the file itself: only the path leads to another one now."""

    def replace(_):
        os.rename("d", "old")
        os.rename("new", "d")

    for folder in ("d", "new"):
        Path(folder).mkdir()
        Path(folder, "a").write_text(folder)
    change_while_reading(monkeypatch, 1, replace)

    assert seen("d/a") == hashes.of_content(b"new")


def test_file_that_is_removed_while_it_is_read_is_absent(monkeypatch):
    Path("a").write_text("old")
    change_while_reading(monkeypatch, 1, lambda _: os.unlink("a"))

    assert seen("a") == ABSENT


def test_file_that_never_rests_is_not_observable(monkeypatch):
    """Bounded: a busy log file must not hold up a resume."""
    Path("a").write_text("x")
    change_while_reading(monkeypatch, 10**6, lambda n: Path("a").write_text("x" * n))

    assert "changes while it is being read" in witness.observe_all([witness.file("a")])["file(a)"].why


# --- locks ------------------------------------------------------------------------------------------


TRY_LOCK = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def others_can_lock(path):
    return subprocess.run([sys.executable, "-c", TRY_LOCK, path], capture_output=True, check=False).returncode == 0


@pytest.mark.processes
@pytest.mark.parametrize("look", [lambda: witness.file("held"), lambda: witness.files("*")])
def test_looking_drops_no_lock_of_this_process(look):
    """Closing any descriptor of a file drops the process's POSIX locks on it: SQLite's, or a sign of life."""
    Path("held").write_text("x")
    with open("held", "r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        assert not others_can_lock("held")

        assert look().fingerprint() == {"file:held": hashes.of_content(b"x")}

        assert not others_can_lock("held")
        assert held.tell() == 0
    assert others_can_lock("held")


def test_store_is_no_file_to_watch():
    """It changes with every entry; and reading it would drop SQLite's locks."""
    open_store("sqlite:///runs.db", create=True)
    Path("runs.db-anchor-notes").write_text("not ours")
    try:
        for pattern in ("*", "*.db", "runs.db-*"):
            with pytest.raises(NotObservable, match="belongs to a surefoot store"):
                witness.files(pattern).fingerprint()
        for path in ("runs.db", "runs.db-wal", "runs.db-anchor"):
            with pytest.raises(NotObservable, match="belongs to a surefoot store"):
                witness.file(path).fingerprint()
        assert len(witness.files("*-notes").fingerprint()) == 1
    finally:
        close_all()


def test_store_is_known_by_what_the_store_says():
    """This layer may not import the store; so the two must agree."""
    assert schema.APPLICATION_ID == stores.APPLICATION_ID
    assert sqlite_file.anchor_path("x") == f"x{stores.ANCHOR}"
    assert _FILE_BYTES == stores.ANCHOR_BYTES


def test_file_whose_name_ends_like_an_anchor_hides_nothing():
    """Else anybody could make a file unwatched by putting another one beside it."""
    Path("a").write_text("x")
    Path("a-anchor").write_text("no anchor")

    assert witness.files("*").fingerprint().keys() == {"file:a", "file:a-anchor"}


# --- globs ------------------------------------------------------------------------------------------


@pytest.fixture
def tree():
    for path in ("a.py", "b.txt", ".hidden.py", "src/c.py", "src/d.pyc", "src/x/y/e.py", "src/.git/f.py", "[1].py"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(path)
    Path("src/x/loop").symlink_to("../..")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["[1].py", "a.py"]),
        ("**/*.py", ["[1].py", "a.py", "src/c.py", "src/x/y/e.py"]),
        ("src/**", ["src/c.py", "src/d.pyc", "src/x", "src/x/loop", "src/x/y", "src/x/y/e.py"]),
        ("**/y/*", ["src/x/y/e.py"]),
        ("**/**/e.py", ["src/x/y/e.py"]),
        ("src/*.py[c]", ["src/d.pyc"]),
        ("?.py", ["a.py"]),
        ("[!b].py", ["a.py"]),
        ("[[]1].py", ["[1].py"]),
        (".*.py", [".hidden.py"]),
        ("src/.git/*", ["src/.git/f.py"]),
        ("*/*.py", ["src/c.py"]),
        ("src/*/y/e.py", ["src/x/y/e.py"]),
        ("src/c.py", ["src/c.py"]),
        ("src/x/loop/a.*", ["src/x/loop/a.py"]),
        ("none/*", []),
        ("src/../*.txt", ["src/../b.txt"]),
    ],
)
def test_patterns_mean_what_a_shell_means(tree, pattern, found):
    assert globs.expand(pattern, Pulse()) == found


def test_absolute_patterns_work_as_well(tree, tmp_path):
    assert globs.expand(f"{tmp_path}/*.txt", Pulse()) == [f"{tmp_path}/b.txt"]


def test_files_has_a_value_by_path(tree):
    assert witness.files("src/*.py").value() == {"src/c.py": hashes.of_content(b"src/c.py")}
    assert witness.file("nothing").value() is None


def test_too_many_files_are_refused_not_cut_off(tree, monkeypatch):
    """A list that ends somewhere would never see the rest change."""
    monkeypatch.setattr(globs, "MOST", 3)

    assert "more than 3 files" in witness.observe_all([witness.files("**")])["files(**)"].why


def test_many_files_are_each_seen_as_if_alone(monkeypatch):
    """In threads and batches; one that fails spoils all."""
    for number in range(300):
        Path(f"{number}.txt").write_text(str(number))

    parts = witness.files("*.txt").fingerprint()

    assert parts == {f"file:{number}.txt": hashes.of_content(str(number).encode()) for number in range(300)}
    assert list(parts) == sorted(parts)
    monkeypatch.setattr(hashes, "_CHUNK", -1)
    assert isinstance(witness.observe_all([witness.files("*.txt")])["files(*.txt)"], Unseen)
