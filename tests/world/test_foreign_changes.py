"""What somebody else changed while the run was away is found, each in the part it concerns and nothing else."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import sys
import time
from pathlib import Path

import pytest

from surefoot import witness
from surefoot.core.entry import Sight
from surefoot.core.expectation import Expectation

PREFIX = "a" * 40
OTHER = "b" * 40


@pytest.fixture
def world(web, own_folder, monkeypatch):
    """A small project, a database, a repository, a server; and what the run saw of them."""
    for name, text in {"a.txt": "alpha", "b.txt": "beta", "c.txt": "", "sub/d.txt": "delta"}.items():
        path = Path("src", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    Path("src/run.sh").write_text("#!/bin/sh\n")
    Path("src/run.sh").chmod(0o755)
    Path("src/link.txt").symlink_to("b.txt")
    Path("src/big.bin").write_bytes(bytes(3_000_000))
    Path("other").write_text("beta")
    Path("releases/1").mkdir(parents=True)
    Path("releases/2").mkdir()
    Path("current").symlink_to("releases/1")
    make_repository()
    make_database()
    monkeypatch.setenv("STAGE", "test")
    web.json("/api", '{"info": {"version": "4", "list": [1, 2], "none": null}}', ETag='"one"')
    return web


def make_repository():
    Path("repo/.git/refs/heads").mkdir(parents=True)
    Path("repo/.git/objects").mkdir()
    Path("repo/.git/HEAD").write_text("ref: refs/heads/main\n")
    Path("repo/.git/refs/heads/main").write_text(PREFIX + "\n")
    Path("repo/.git/refs/heads/work").write_text(OTHER + "\n")


def make_database():
    execute(
        "PRAGMA user_version=4",
        "CREATE TABLE users (id INTEGER PRIMARY KEY, mail TEXT NOT NULL, n INT DEFAULT 3, CHECK (n > 0))",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INT REFERENCES users)",
        "CREATE INDEX by_mail ON users (mail)",
        "CREATE VIEW mails AS SELECT mail FROM users",
        "CREATE TRIGGER once AFTER DELETE ON users BEGIN SELECT 1; END",
        "INSERT INTO users (mail) VALUES ('a@x'), ('b@x')",
    )


def execute(*statements):
    connection = sqlite3.connect("app.db", isolation_level=None)
    for statement in ("PRAGMA synchronous=OFF", *statements):
        connection.execute(statement)
    connection.close()


def watched(web):
    url = "sqlite:///app.db"
    return [
        witness.files("src/**"),
        witness.file("gone.txt"),
        witness.file("current"),
        witness.git_head("repo"),
        witness.sql(url, "SELECT id, mail FROM users"),
        witness.sql(url, "PRAGMA user_version"),
        witness.db_schema(url),
        witness.http_json(f"{web.url}/api", "/info/version"),
        witness.http_json(f"{web.url}/api", "/info/list/1"),
        witness.http_json(f"{web.url}/api", "/info/none"),
        witness.http_header(f"{web.url}/api", "ETag"),
        witness.env("STAGE"),
        witness.env("SUREFOOT_TEST_UNSET"),
        witness.observe("prompt", lambda: Path("other").read_text()),
    ]


def drift_after(web, change, monkeypatch):
    """As a resume does it: fold what was seen, rebuild each witness from its spec if it has one, look again."""
    before = watched(web)
    expected = Expectation()
    specs = {each.name: each.spec for each in before}
    seen = witness.observe_all(before)
    expected.see([Sight(name, parts, specs[name]) for name, parts in seen.items()], "start", 1)
    assert [] == expected.drift(witness.observe_all(before))

    change(web, monkeypatch)

    again = [witness.from_spec(each.spec) or each for each in before]
    return expected.drift(witness.observe_all(again))


def write(path, text):
    return lambda *_: Path(path).write_text(text)


def append(*_):
    with open("src/a.txt", "a") as file:
        file.write("!")


def same_times(path, text):
    def change(*_):
        old = os.stat(path)
        Path(path).write_text(text)
        os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))

    return change


def same_inode_flip(path, offset):
    def change(*_):
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(b"\x01")

    return change


def replaced(path, make):
    def change(*_):
        os.unlink(path)
        make(path)

    return change


def sent(status, headers, body):
    def change(web, _):
        web.answers["/api"] = (status, headers, body)

    return change


def document(text, etag='"one"'):
    return lambda web, _: web.json("/api", text, ETag=etag)


def listen_at(path):
    with socket.socket(socket.AF_UNIX) as each:
        each.bind(path)


def sql(*statements):
    return lambda *_: execute(*statements)


def moved_in_packed_refs(*_):
    Path("repo/.git/refs/heads/main").unlink()
    Path("repo/.git/packed-refs").write_text(f"# pack-refs with: peeled\n{OTHER} refs/heads/main\n^{PREFIX}\n")


def far_back(*_):
    Path("src/a.txt").write_text("ALPHA")
    os.utime("src/a.txt", (0, 0))


FILE = "file:src/"
URL = "sqlite:///app.db"
CHANGES = {
    # the content of files
    "content": (write("src/a.txt", "alpha, edited"), {"file:src/a.txt": "changed"}),
    "other content of the same size": (write("src/a.txt", "ALPHA"), {"file:src/a.txt": "changed"}),
    "same size, same time-stamp": (same_times("src/a.txt", "ALPHA"), {"file:src/a.txt": "changed"}),
    "a time-stamp of 1970": (far_back, {"file:src/a.txt": "changed"}),
    "one byte in three million": (same_inode_flip("src/big.bin", 2_999_999), {"file:src/big.bin": "changed"}),
    "one byte at the edge of a chunk": (same_inode_flip("src/big.bin", 1_048_576), {"file:src/big.bin": "changed"}),
    "truncated": (lambda *_: os.truncate("src/b.txt", 1), {"file:src/b.txt": "changed", "file:src/link.txt": "changed"}),
    "emptied": (write("src/a.txt", ""), {"file:src/a.txt": "changed"}),
    "grown by zeroes": (lambda *_: os.truncate("src/a.txt", 9), {"file:src/a.txt": "changed"}),
    "appended": (append, {"file:src/a.txt": "changed"}),
    "an empty file filled": (write("src/c.txt", "x"), {"file:src/c.txt": "changed"}),
    "other line ends": (write("src/run.sh", "#!/bin/sh\r\n"), {"file:src/run.sh": "changed"}),
    "in a folder below": (write("src/sub/d.txt", "Delta"), {"file:src/sub/d.txt": "changed"}),
    "replaced by rename": (lambda *_: os.replace("other", "src/a.txt"), {"file:src/a.txt": "changed", "observe": ""}),
    # whether they are there
    "removed": (lambda *_: os.unlink("src/a.txt"), {"file:src/a.txt": "removed"}),
    "added": (write("src/new.txt", "n"), {"file:src/new.txt": "added"}),
    "an empty one added": (write("src/new.txt", ""), {"file:src/new.txt": "added"}),
    "a missing one appeared": (write("gone.txt", "back"), {"file:gone.txt": "added"}),
    "an empty one in place of a missing one": (write("gone.txt", ""), {"file:gone.txt": "added"}),
    "renamed": (
        lambda *_: os.rename("src/a.txt", "src/z.txt"),
        {"file:src/a.txt": "removed", "file:src/z.txt": "added"},
    ),
    "renamed in case only": (
        lambda *_: os.rename("src/a.txt", "src/A.txt"),
        {"file:src/a.txt": "removed", "file:src/A.txt": "added"},
    ),
    "two swapped": (
        lambda *_: (os.rename("src/a.txt", "t"), os.rename("src/c.txt", "src/a.txt"), os.rename("t", "src/c.txt")),
        {"file:src/a.txt": "changed", "file:src/c.txt": "changed"},
    ),
    "copied": (lambda *_: shutil.copy("src/a.txt", "src/copy.txt"), {"file:src/copy.txt": "added"}),
    "hard link added": (lambda *_: os.link("src/a.txt", "src/hard.txt"), {"file:src/hard.txt": "added"}),
    "a folder below removed": (lambda *_: shutil.rmtree("src/sub"), {"file:src/sub/d.txt": "removed"}),
    "a folder below renamed": (
        lambda *_: os.rename("src/sub", "src/bus"),
        {"file:src/sub/d.txt": "removed", "file:src/bus/d.txt": "added"},
    ),
    "a folder below hidden": (lambda *_: os.rename("src/sub", "src/.sub"), {"file:src/sub/d.txt": "removed"}),
    "a file deep below added": (
        lambda *_: (os.makedirs("src/x/y/z"), Path("src/x/y/z/n").touch()),
        {"file:src/x/y/z/n": "added"},
    ),
    "a name that is not UTF-8": (lambda *_: Path(os.fsdecode(b"src/\xff.txt")).touch(), {r"file:src/\xff.txt": "added"}),
    "a name with a newline": (write("src/a\nb", ""), {"file:src/a\nb": "added"}),
    # what they are
    "replaced by a link to the same content": (
        replaced("src/a.txt", lambda path: (Path("src/copy.bin").write_text("alpha"), os.symlink("copy.bin", path))),
        {"file:src/a.txt": "changed", "file:src/copy.bin": "added"},
    ),
    "replaced by a dangling link": (replaced("src/a.txt", lambda p: os.symlink("no", p)), {"file:src/a.txt": "changed"}),
    "replaced by a link to itself": (replaced("src/a.txt", lambda p: os.symlink("a.txt", p)), {"file:src/a.txt": "changed"}),
    "replaced by a link to /dev/zero": (
        replaced("src/a.txt", lambda path: os.symlink("/dev/zero", path)),
        {"file:src/a.txt": "changed"},
    ),
    "replaced by a directory": (replaced("src/a.txt", os.mkdir), {"file:src/a.txt": "removed"}),
    "replaced by a fifo": (replaced("src/a.txt", os.mkfifo), {"file:src/a.txt": "changed"}),
    "replaced by a socket": (replaced("src/a.txt", listen_at), {"file:src/a.txt": "changed"}),
    "a fifo added": (lambda *_: os.mkfifo("src/pipe"), {"file:src/pipe": "added"}),
    "a link led elsewhere": (
        replaced("src/link.txt", lambda path: os.symlink("a.txt", path)),
        {"file:src/link.txt": "changed"},
    ),
    "a link led to equal content": (
        replaced("src/link.txt", lambda path: os.symlink("../other", path)),
        {"file:src/link.txt": "changed"},
    ),
    "a link became a file": (
        replaced("src/link.txt", lambda path: Path(path).write_text("beta")),
        {"file:src/link.txt": "changed"},
    ),
    "a link's folder moved on": (replaced("current", lambda p: os.symlink("releases/2", p)), {"file:current": "changed"}),
    "made executable": (lambda *_: os.chmod("src/a.txt", 0o755), {"file:src/a.txt": "changed"}),
    "no longer executable": (lambda *_: os.chmod("src/run.sh", 0o644), {"file:src/run.sh": "changed"}),
    "made read-only": (lambda *_: os.chmod("src/a.txt", 0o444), {"file:src/a.txt": "changed"}),
    # git
    "a commit": (write("repo/.git/refs/heads/main", OTHER), {"git:repo:HEAD": "changed"}),
    "a commit, packed": (moved_in_packed_refs, {"git:repo:HEAD": "changed"}),
    "another branch": (write("repo/.git/HEAD", "ref: refs/heads/work"), {"git:repo:HEAD": "changed"}),
    "a detached HEAD": (write("repo/.git/HEAD", OTHER), {"git:repo:HEAD": "changed"}),
    "a branch without a commit": (write("repo/.git/HEAD", "ref: refs/heads/new"), {"git:repo:HEAD": "removed"}),
    # a database
    "a row added": (sql("INSERT INTO users (mail) VALUES ('c@x')"), {f"sql:{URL}#SELECT id, mail FROM users": "changed"}),
    "a row removed": (sql("DELETE FROM users WHERE id=2"), {f"sql:{URL}#SELECT id, mail FROM users": "changed"}),
    "a row changed": (sql("UPDATE users SET mail='A@x' WHERE id=1"), {f"sql:{URL}#SELECT id, mail FROM users": "changed"}),
    "the schema's version": (sql("PRAGMA user_version=5"), {f"sql:{URL}#PRAGMA user_version": "changed"}),
    "a column added": (sql("ALTER TABLE users ADD x"), {f"schema:{URL}:users": "changed"}),
    "a column renamed": (sql("ALTER TABLE orders RENAME user_id TO u"), {f"schema:{URL}:orders": "changed"}),
    "a column dropped": (sql("ALTER TABLE orders DROP user_id"), {f"schema:{URL}:orders": "changed"}),
    "an index added": (sql("CREATE INDEX i ON orders (user_id)"), {f"schema:{URL}:orders": "changed"}),
    "an index dropped": (sql("DROP INDEX by_mail"), {f"schema:{URL}:users": "changed"}),
    "an index made unique": (
        sql("DROP INDEX by_mail", "CREATE UNIQUE INDEX by_mail ON users (mail)"),
        {f"schema:{URL}:users": "changed"},
    ),
    "a trigger dropped": (sql("DROP TRIGGER once"), {f"schema:{URL}:users": "changed"}),
    "a view changed": (
        sql("DROP VIEW mails", "CREATE VIEW mails AS SELECT mail FROM users WHERE n > 5"),
        {f"schema:{URL}:mails": "changed"},
    ),
    "a table added": (sql("CREATE TABLE more (x)"), {f"schema:{URL}:more": "added"}),
    "a table dropped": (sql("DROP TABLE orders"), {f"schema:{URL}:orders": "removed"}),
    "another type": (
        sql("DROP TABLE orders", "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id TEXT REFERENCES users)"),
        {f"schema:{URL}:orders": "changed"},
    ),
    # a server
    "another version": (document('{"info": {"version": "5", "list": [1, 2], "none": null}}'), {"#/info/version": "changed"}),
    "a number for a text": (document('{"info": {"version": 4, "list": [1, 2], "none": null}}'), {"#/info/version": "changed"}),
    "a value gone": (document('{"info": {"list": [1, 2], "none": null}}'), {"#/info/version": "removed"}),
    "a shorter list": (document('{"info": {"version": "4", "list": [1], "none": null}}'), {"#/info/list/1": "removed"}),
    "null is not nothing": (document('{"info": {"version": "4", "list": [1, 2]}}'), {"#/info/none": "removed"}),
    "another ETag": (document('{"info": {"version": "4", "list": [1, 2], "none": null}}', etag='"two"'), {":etag": "changed"}),
    "an ETag gone": (sent(200, {}, b'{"info": {"version": "4", "list": [1, 2], "none": null}}'), {":etag": "removed"}),
    # the process
    "a variable changed": (lambda _, m: m.setenv("STAGE", "live"), {"env:STAGE": "changed"}),
    "a variable gone": (lambda _, m: m.delenv("STAGE"), {"env:STAGE": "removed"}),
    "a variable appeared": (lambda _, m: m.setenv("SUREFOOT_TEST_UNSET", ""), {"env:SUREFOOT_TEST_UNSET": "added"}),
    "what a function sees": (write("other", "gamma"), {"observe:prompt": "changed"}),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_foreign_change_is_found(world, change, monkeypatch):
    """The run would go on in a world that is not the one it left."""
    make, wanted = CHANGES[change]
    wanted = dict(wanted)
    vanished = wanted.pop("observe", None) is not None

    found = drift_after(world, make, monkeypatch)

    if vanished:  # the file that was moved is also what the function reads
        assert ["prompt"] == [drift.witness for drift in found if drift.what == "not observable"]
        found = [drift for drift in found if drift.what != "not observable"]
    told = {next((key for key in wanted if drift.part.endswith(key)), drift.part): drift.what for drift in found}
    assert wanted == told


def test_there_are_more_than_sixty_of_them():
    assert len(CHANGES) >= 60


LOST = {
    "permission lost": (lambda *_: os.chmod("src/a.txt", 0), "files(src/**)"),
    "the database gone": (lambda *_: os.unlink("app.db"), "db_schema(sqlite:///app.db)"),
    "the database overwritten": (write("app.db", "no database at all" * 100), "db_schema(sqlite:///app.db)"),
    "the watched table dropped": (sql("DROP TABLE users"), f"sql({URL}, SELECT id, mail FROM users)"),
    "the repository gone": (lambda *_: shutil.rmtree("repo"), "git_head(repo)"),
    "HEAD emptied": (write("repo/.git/HEAD", "nonsense"), "git_head(repo)"),
    "the page gone": (lambda web, _: web.answers.clear(), "/info/version)"),
    "the server in trouble": (sent(503, {}, b"later"), "/info/version)"),
    "no JSON any more": (sent(200, {"ETag": '"one"'}, b"<html>"), "/info/version)"),
    "sent to another host": (sent(302, {"Location": "http://localhost:1/api"}, b""), "/info/version)"),
}


@pytest.mark.parametrize("change", LOST)
def test_what_can_no_longer_be_seen_is_a_stop(world, change, monkeypatch):
    """Not seen is not unchanged."""
    make, name = LOST[change]

    found = drift_after(world, make, monkeypatch)

    assert any(
        drift.what in ("not observable", "changed") and drift.witness.endswith(name) and drift.actual for drift in found
    )


UNIMPORTANT = {
    "touched": lambda *_: os.utime("src/a.txt"),
    "written again": write("src/a.txt", "alpha"),
    "replaced by its like": lambda *_: (Path("t").write_text("alpha"), os.replace("t", "src/a.txt")),
    "readable by all": lambda *_: os.chmod("src/a.txt", 0o666),
    "a hidden file": write("src/.swp", "x"),
    "an empty folder": lambda *_: os.mkdir("src/empty"),
    "refs packed": lambda *_: (
        Path("repo/.git/packed-refs").write_text(f"{PREFIX} refs/heads/main\n"),
        os.unlink("repo/.git/refs/heads/main"),
    ),
    "database tidied": sql("VACUUM", "ANALYZE"),
    "database in WAL mode": sql("PRAGMA journal_mode=wal"),
    "schema written otherwise": sql(
        "DROP TABLE orders",
        'create table "orders" (id integer primary key,  -- the key\n user_id int references [users])',
    ),
    "our own table in their database": sql("CREATE TABLE surefoot_effects (key TEXT PRIMARY KEY)"),
    "rows in another order": sql(
        "CREATE TEMP TABLE t AS SELECT * FROM users",
        "DELETE FROM users",
        "INSERT INTO users SELECT * FROM t ORDER BY id DESC",
    ),
    "the document in another order": document('{"info":{"none":null,"list":[1,2],"version":"4","more":1}}'),
}


@pytest.mark.parametrize("change", UNIMPORTANT)
def test_what_makes_no_difference_is_no_drift(world, change, monkeypatch):
    """A stop for nothing teaches people to accept without reading."""
    assert [] == drift_after(world, UNIMPORTANT[change], monkeypatch)


def test_two_thousand_files_are_seen_at_once(own_folder, capsys):
    """Large globs are hashed quickly; how quickly is told, not asserted."""
    Path("many").mkdir()
    for number in range(2000):
        Path(f"many/{number}.txt").write_text(f"file {number}\n" * (number % 50))
    begun = time.perf_counter()

    parts = witness.files("many/*.txt").fingerprint()

    seconds = time.perf_counter() - begun
    with capsys.disabled():
        sys.stdout.write(f" [2,000 files hashed in {seconds * 1000:.0f} ms] ")
    assert len(parts) == 2000
    assert witness.file("many/1999.txt").fingerprint().items() <= parts.items()
