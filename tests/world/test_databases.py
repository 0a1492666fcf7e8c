"""Looking into the user's database: nothing is written, nothing is left behind, and nobody waits for ever."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from surefoot import witness
from surefoot.core.entry import ABSENT
from surefoot.core.expectation import Unseen
from surefoot.errors import UsageError
from surefoot.store.open import close_all, open_store
from surefoot.world import databases
from surefoot.world.base import NotObservable, Pulse
from surefoot.world.sqlite import canonical

URL = "sqlite:///app.db"


@pytest.fixture
def db():
    with closing(sqlite3.connect("app.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("CREATE TABLE t (a, b)")
        connection.execute("INSERT INTO t VALUES (1, 'x'), (2, NULL), (3, x'00ff'), (4, 1.5)")
        yield connection


def why(*arguments, seconds=10.0):
    seen = witness.observe_all([witness.sql(*arguments, name="it")], seconds=seconds)["it"]
    assert isinstance(seen, Unseen), seen
    return seen.why


def test_value_is_the_rows_as_plain_data(db):
    assert witness.sql(URL, "SELECT * FROM t ORDER BY a").value() == [[1, "x"], [2, None], [3, b"\x00\xff"], [4, 1.5]]


def test_order_counts_only_where_it_was_asked_for(db):
    """A database may return rows in any order; that is no change."""
    db.execute("CREATE VIEW down AS SELECT a FROM t ORDER BY a DESC")

    assert witness.sql(URL, "SELECT a FROM down").value() == [[1], [2], [3], [4]]
    assert witness.sql(URL, "SELECT a FROM t order  BY a DESC").value() == [[4], [3], [2], [1]]


@pytest.mark.parametrize(
    "query",
    ["DELETE FROM t", "INSERT INTO t VALUES (1, 1) RETURNING a", "DROP TABLE t", "ATTACH 'other.db' AS o", "VACUUM INTO 'v'",
     "PRAGMA user_version=7", "PRAGMA journal_mode=wal", "CREATE TEMP TABLE x (a)", "BEGIN IMMEDIATE", "SELECT 1; DELETE FROM t",
     "PRAGMA writable_schema=1", "SELECT load_extension('x')", "PRAGMA wal_checkpoint(TRUNCATE)", "SELECT * FROM nowhere", "", "--"],
)  # fmt: skip
def test_query_can_only_read(db, query):
    """It may come out of a store."""
    before = Path("app.db").read_bytes()

    if query:
        why(URL, query)
    else:
        with pytest.raises(UsageError):
            witness.sql(URL, query)

    assert Path("app.db").read_bytes() == before
    assert os.listdir() == ["app.db"]


def test_query_that_takes_for_ever_is_interrupted(db):
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    assert why(URL, endless, seconds=0.3) == "no answer within 0.3 s"
    with pytest.raises(TimeoutError):
        witness.sql(URL, endless).look(Pulse(0.2))


def test_locked_database_is_not_waited_for_longer_than_the_limit(db):
    db.execute("BEGIN EXCLUSIVE")
    assert why(URL, "SELECT 1 FROM t", seconds=0.3) in (
        "app.db is locked by somebody who writes",
        "no answer within 0.3 s",
    )


def test_too_many_rows_are_refused_not_cut_off(db, monkeypatch):
    monkeypatch.setattr(databases, "MOST_ROWS", 3)
    assert "more than 3 rows" in why(URL, "SELECT * FROM t")


def test_huge_values_are_refused(db):
    assert "too big" in why(URL, "SELECT zeroblob(100000000)")


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_nothing_is_left_behind(db, mode):
    """SQLite leaves -wal and -shm when it only reads a database in WAL mode; a glob would see them as added."""
    db.execute(f"PRAGMA journal_mode={mode}")
    db.close()
    before = Path("app.db").stat()

    assert witness.sql(URL, "SELECT count(*) FROM t").value() == [[4]]
    assert witness.db_schema(URL).fingerprint()

    assert os.listdir() == ["app.db"]
    assert Path("app.db").stat().st_mtime_ns == before.st_mtime_ns


def test_what_is_only_in_the_log_is_seen(db):
    """A database in WAL mode that is in use has its newest rows beside it."""
    db.execute("PRAGMA journal_mode=wal")
    db.execute("PRAGMA wal_autocheckpoint=0")
    db.execute("INSERT INTO t VALUES (5, 5)")
    assert witness.sql(URL, "SELECT max(a) FROM t").value() == [[5]]


@pytest.mark.processes
def test_looking_does_not_end_the_transaction_of_this_process(db):
    """The code and the witness use the same SQLite: it knows of both."""
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO t VALUES (9, 9)")

    assert witness.sql(URL, "SELECT count(*) FROM t").value() == [[4]]

    other = "import sqlite3; sqlite3.connect('app.db', timeout=0).execute('BEGIN IMMEDIATE')"
    assert b"locked" in subprocess.run([sys.executable, "-c", other], capture_output=True, check=False).stderr
    db.execute("COMMIT")
    assert witness.sql(URL, "SELECT count(*) FROM t").value() == [[5]]


DIES_WRITING = """
import os, signal, sqlite3
db = sqlite3.connect("app.db", isolation_level=None)
db.execute("PRAGMA cache_size=1")
db.execute("BEGIN IMMEDIATE")
db.executemany("INSERT INTO t VALUES (?, ?)", [(n, "x" * 4000) for n in range(100)])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.processes
def test_what_a_dead_process_left_half_written_is_rolled_back(db):
    """A run that watches the database it writes to has to survive its own death, and nobody else opens it meanwhile."""
    db.close()
    subprocess.run([sys.executable, "-c", DIES_WRITING], check=False)
    assert "app.db-journal" in os.listdir()

    assert witness.sql(URL, "SELECT count(*) FROM t").value() == [[4]]

    assert os.listdir() == ["app.db"]


def test_what_a_living_process_has_half_written_is_left_alone(db):
    """Its journal looks the same from outside; only the lock tells that it is not dead."""
    db.execute("PRAGMA cache_size=1")
    db.execute("BEGIN IMMEDIATE")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(n, "x" * 4000) for n in range(100)])

    assert "locked" in why(URL, "SELECT count(*) FROM t", seconds=0.3)

    db.execute("COMMIT")
    assert witness.sql(URL, "SELECT count(*) FROM t").value() == [[104]]


@pytest.mark.processes
def test_where_nothing_can_be_rolled_back_the_command_is_told(db, monkeypatch):
    """Whoever is called at night should not have to know what a hot journal is."""
    db.close()
    subprocess.run([sys.executable, "-c", DIES_WRITING], check=False)
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name, **given: real(name.replace("mode=rw", "mode=ro"), **given))

    assert "sqlite3 app.db 'PRAGMA user_version'" in why(URL, "SELECT count(*) FROM t")


def test_store_is_refused_as_a_database():
    """Two copies of SQLite in one process on one file would drop each other's locks."""
    open_store("sqlite:///runs.db", create=True)
    try:
        Path("alias.db").symlink_to("runs.db")
        assert "surefoot store" in why("sqlite:///runs.db", "SELECT 1")
        assert "surefoot store" in why("sqlite:///alias.db", "SELECT 1")
    finally:
        close_all()
    os.unlink("runs.db-anchor")
    assert "surefoot store" in why("sqlite:///runs.db", "SELECT 1")


@pytest.mark.parametrize("make", [lambda: None, lambda: os.mkdir("app.db"), lambda: os.mkfifo("app.db"),
                                  lambda: Path("app.db").write_text("no database" * 99)])  # fmt: skip
def test_what_is_no_database_is_not_observable(make):
    make()
    assert "app.db" in why(URL, "SELECT 1 FROM sqlite_master")


def test_missing_database_is_not_made():
    why(URL, "SELECT 1")
    assert os.listdir() == []


@pytest.mark.parametrize(
    "url", ["app.db", "sqlite:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///a?b", "sqlite:///d/", "mysql://h/d",
            "sqlite:///a b", "", None, "sqlite:///~/x"],
)  # fmt: skip
def test_urls_that_name_no_database_are_refused_at_once(url):
    with pytest.raises(UsageError):
        witness.sql(url, "SELECT 1")


def test_path_of_a_url_is_decoded():
    with closing(sqlite3.connect("a b?.db")) as connection:
        connection.execute("CREATE TABLE t (x)")
    assert witness.db_schema("sqlite:///a%20b%3F.db").fingerprint().keys() == {"schema:sqlite:///a%20b%3F.db:t"}


def test_text_that_is_not_utf8_is_seen(db):
    db.execute("INSERT INTO t VALUES (7, CAST(x'ff41' AS TEXT))")
    assert witness.sql(URL, "SELECT b FROM t WHERE a=7").value() == [["\udcffA"]]


def test_postgres_without_its_driver_names_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "pip install" in why("postgresql://u@h/db", "SELECT 1")


# --- names ------------------------------------------------------------------------------------------


def test_names_read_like_the_constructor_and_long_queries_stay_apart():
    one, two = (witness.sql(URL, f"SELECT {'x' * 300}{end}") for end in "ab")
    assert witness.sql(URL, "SELECT 1").name == "sql(sqlite:///app.db, SELECT 1)"
    assert one.name != two.name
    assert max(len(one.name), len(two.name)) < 300
    assert witness.sql(URL, "SELECT 'a  b'").name != witness.sql(URL, "SELECT 'a b'").name


# --- tables -----------------------------------------------------------------------------------------


def test_named_table_that_is_missing_is_absent(db):
    parts = witness.db_schema(URL, tables=["T", "u"]).fingerprint()
    assert parts == {**witness.db_schema(URL).fingerprint(), f"schema:{URL}:u": ABSENT}


def test_schema_says_what_tables_look_like(db):
    db.execute("CREATE INDEX i ON t (a) WHERE b > 0")
    assert witness.db_schema(URL).value() == {
        "t": {
            "kind": "table",
            "definition": "create table t ( a , b )",
            "columns": ["a (no type)", "b (no type)"],
            "indexes": {"i": "create index i on t ( a ) where b > 0"},
            "triggers": {},
        }
    }


def test_data_is_no_matter_of_the_schema(db):
    before = witness.db_schema(URL).fingerprint()
    db.execute("DELETE FROM t")
    assert witness.db_schema(URL).fingerprint() == before


def test_tables_of_surefoot_are_seen_only_when_named(db):
    """Its marker in the user's database is not drift."""
    db.execute("CREATE TABLE surefoot_x (a)")
    assert witness.db_schema(URL).value().keys() == {"t"}
    assert witness.db_schema(URL, tables=["surefoot_x"]).value().keys() == {"surefoot_x"}


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("CREATE TABLE a(b)", 'create  table "A" ( [b] ) -- c', True),
        ("CREATE TABLE a(b CHECK (b='X'))", "CREATE TABLE a(b CHECK (b='x'))", False),
        ("CREATE TABLE a(b DEFAULT 'a  b')", "CREATE TABLE a(b DEFAULT 'a b')", False),
        ("CREATE TABLE a(b DEFAULT '--x')", "CREATE TABLE a(b DEFAULT '--y')", False),
        ('CREATE TABLE a("b c")', 'CREATE TABLE a("b  c")', False),
        ("CREATE TABLE a(b /* x */)", "CREATE TABLE a(b)", True),
        ("CREATE TABLE a(b,c)", "CREATE TABLE a(c,b)", False),
        ("CREATE TABLE a(b) STRICT", "CREATE TABLE a(b)", False),
    ],
)
def test_definitions_are_compared_by_meaning(one, two, same):
    assert (canonical(one) == canonical(two)) == same


def test_tables_takes_a_list():
    with pytest.raises(UsageError, match="list of names"):
        witness.db_schema(URL, tables="users")


def test_fingerprint_raises_what_observe_all_reports(db):
    """Whoever looks by hand is told the same."""
    with pytest.raises(
        NotObservable, match=r"sql\(sqlite:///app.db, DELETE FROM t\) cannot be observed: the query does"
    ):
        witness.sql(URL, "DELETE FROM t").fingerprint()
