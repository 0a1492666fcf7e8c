"""The PostgreSQL store against a real server: the shipped suite, and what only a server can do to a journal."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psycopg
import pytest

from surefoot.core.parts import expand
from surefoot.core.urls import parse
from surefoot.errors import (
    NotFound,
    SchemaMismatch,
    StoreNotDurable,
    StoreUnavailable,
    UsageError,
)
from surefoot.store.channel import Channel
from surefoot.store.contract import Conflict, Extend, Head, RunQuery, Store
from surefoot.store.open import backend_of, open_store
from surefoot.store.postgres.store import PostgresStore
from surefoot.testing.conformance import StoreContract, Writer, assert_whole, index_row, large_value
from tests.postgres import Server, serving


class TestConformance(StoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, server: Server) -> None:
        self.server = server

    def make_store(self, tmp_path: Path) -> Store:
        url = self.server.emptied("other" if tmp_path.name == "other" else "one")
        return PostgresStore.open(parse(url, ["postgresql"]), create=True)


# --- opening -----------------------------------------------------------------------------------------------


def test_reading_makes_nothing(url, opened):
    """`surefoot runs` with a mistyped URL must not leave a schema in somebody's database."""
    with pytest.raises(NotFound, match="no store in postgresql://app@127"):
        opened(create=False)

    with psycopg.connect(url) as db:
        assert db.execute("SELECT to_regnamespace('surefoot')").fetchone() == (None,)


def test_store_is_made_once_and_found_again(url, opened):
    first = opened()
    first.append([Writer(first, "r").append(b"1")])

    assert opened(create=False).id == opened().id == first.id
    assert open_store(url, create=False).read("r").records == first.read("r").records
    assert open_store(url.replace("postgresql:", "postgres:"), create=False) is open_store(url, create=False)
    assert open_store(url.replace("postgresql:", "postgresql+psycopg:"), create=False) is open_store(url, create=False)
    open_store(url, create=False).close()


def test_processes_that_make_the_store_at_once_make_one(url, opened):
    """A hundred workers start at the same moment, against a new database."""
    ids: list[bytes] = []
    start = threading.Barrier(6)

    def work():
        start.wait()
        ids.append(opened().id)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(ids) == 6
    assert len(set(ids)) == 1


def test_store_of_a_newer_version_is_refused(url, opened):
    opened().close()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE surefoot.meta SET format = 99")

    with pytest.raises(SchemaMismatch, match="format 99"):
        opened()


def test_tables_that_do_not_survive_a_crash_are_refused(url, opened):
    """PostgreSQL empties an unlogged table when it recovers."""
    opened().close()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("ALTER TABLE surefoot.entries SET UNLOGGED")

    with pytest.raises(StoreNotDurable, match=r"entries.*unlogged"):
        opened()


def test_database_in_another_encoding_is_refused(server, opened):
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")

    with pytest.raises(UsageError, match="createdb -E UTF8"):
        opened(server.url_of("latin"))


def test_isolation_that_would_hide_what_others_wrote_is_refused(server, opened):
    """The functions look again after waiting for a lock; with one snapshot per transaction they would not see it."""
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute("CREATE DATABASE isolated")
        db.execute("ALTER DATABASE isolated SET default_transaction_isolation = 'repeatable read'")

    with pytest.raises(UsageError, match="read committed"):
        opened(server.url_of("isolated"))


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_server_that_does_not_keep_its_word_is_refused(tmp_path, setting):
    """What was acknowledged must survive a power cut; the settings are read back, not assumed."""
    with (
        serving(tmp_path, f"{setting}=off") as careless,
        pytest.raises(StoreNotDurable, match=f"{setting}=off") as found,
    ):
        PostgresStore.open(parse(careless.url, ["postgresql"]), create=True)

    assert "postgresql.conf" in str(found.value)


def test_role_that_commits_asynchronously_is_overruled(server, url, opened):
    """`ALTER ROLE … SET synchronous_commit = off` is a habit of web applications. Ours wait for the disk."""
    opened().close()
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute("ALTER DATABASE story SET synchronous_commit = off")
    try:
        store = opened()
        assert store.durability()["synchronous_commit"].startswith("on for our commits")
        with psycopg.connect(url) as db:  # a transaction in which the function's setting can be seen
            assert db.execute("SHOW synchronous_commit").fetchone() == ("off",)
            (record,) = Writer(store, "r").records(b"1")
            db.execute(
                "SELECT surefoot.append_one_1('r', NULL, NULL, 1, 1, 1, 1, 1, 1, 0, %s, %s, 0)",
                [record.body, record.seal],
            )
            assert db.execute("SHOW synchronous_commit").fetchone() == ("on",)
    finally:
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute("ALTER DATABASE story RESET synchronous_commit")


def test_server_that_is_not_there_is_unavailable_and_no_password_is_shown(caplog):
    """Messages end up in logs, tickets and chats."""
    where = "postgresql://app:g%40heim@127.0.0.1:1/db"
    for use in (lambda: open_store(where, create=True), lambda: open_store(where, create=False)):
        with pytest.raises(StoreUnavailable) as found:
            use()
        assert "app:***@127.0.0.1" in str(found.value)
        assert "heim" not in f"{found.value!r} {found.value.__cause__!r} {caplog.text}"
    for mistake in ("postgress://app:geheim@h/db", "postgresql://app:geheim@h/db#x", "postgresql:app:geheim@h"):
        with pytest.raises(UsageError) as refused:
            open_store(mistake, create=False)
        assert "geheim" not in str(refused.value)


def test_url_and_settings_show_no_password(server, opened):
    where = server.url_of("story", password="geheim")
    store = opened(where)

    assert store.url == where.replace("geheim", "***")
    assert "geheim" not in str(store.durability())
    with pytest.raises(UsageError, match="pg_dump") as refused:
        backend_of(where).file(where)
    assert "geheim" not in str(refused.value)


def test_missing_driver_names_the_cure(monkeypatch):
    import importlib

    def no_psycopg(name):
        raise ImportError(name)

    monkeypatch.setattr("surefoot.store.postgres.connection.import_module", no_psycopg)
    with pytest.raises(UsageError, match=r"pip install 'surefoot\[postgres\]'"):
        open_store("postgresql://app@127.0.0.1:1/db", create=True)
    assert importlib


# --- appending ---------------------------------------------------------------------------------------------


def test_nothing_depends_on_the_session(opened, monkeypatch):
    """A pooler gives each transaction another backend: here every statement has a connection of its own."""
    asked = Channel.ask_twice

    def alone(self, *given, **more):
        try:
            return asked(self, *given, **more)
        finally:
            if self.connection is not None:
                self.connection.close()
                self.connection = None

    monkeypatch.setattr(Channel, "ask_twice", alone)
    store = opened()
    writer, value = Writer(store, "r"), large_value(1)
    for n in range(3):
        assert store.append([writer.append(b"%d" % n, row=index_row("r", wake=0), cuts=[value])]) == [None]
        assert store.append([writer.append(b"%d" % n)]) == [None]

    assert_whole(store, "r", 6)
    assert expand(value.reference, store.parts)
    assert store.discard(store.part_ids(), store.changes())
    assert store.append([Writer(store, "r").append(b"x")]) == [Conflict("r")]
    assert [item.row for item in store.runs(RunQuery())] == [index_row("r", wake=0)]


def test_run_with_a_record_behind_its_head_is_a_conflict_for_that_run_alone(url, opened):
    """Damage: the head was put back. The reader of the run will see it; strangers in the batch go through."""
    store = opened()
    bad, good = Writer(store, "bad"), Writer(store, "good")
    store.append([bad.append(b"1"), good.append(b"1")])
    back = bad.head
    store.append([bad.append(b"2")])
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE surefoot.heads SET seq = 1, seal = %s WHERE run = 'bad'", [back.seal])
    late = Writer(store, "bad", head=back)

    assert store.append([late.append(b"2 again")]) == [Conflict("bad")]
    late.head = back
    assert store.append([late.append(b"2 again"), good.append(b"2")]) == [Conflict("bad"), None]

    assert_whole(store, "good", 2)
    assert [record.body for record in store.read("bad").records] == [b"1", b"2"]


def test_later_wish_for_a_run_is_judged_after_the_earlier_one(opened):
    """Two callers of one run in one batch, of which the first has lost its race."""
    store = opened()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    stale = Writer(store, "r", head=Head(7, bytes(32)))

    assert store.append([stale.append(b"8"), writer.append(b"2"), stale.append(b"9")]) == [
        Conflict("r"), None, Conflict("r"),
    ]  # fmt: skip

    assert_whole(store, "r", 2)


@pytest.mark.parametrize("row", [{"queue": "a\0b"}, {"workflow": "\ud800"}])
def test_text_that_cannot_be_stored_is_the_callers_mistake(opened, row):
    store = opened()
    with pytest.raises(UsageError, match="cannot be stored"):
        store.append([Writer(store, "r").append(b"1", row=index_row("r", **row))])

    assert store.read("r").head is None


def test_writer_waits_for_a_lock_beyond_the_servers_own_time_limit(server, url, opened):
    """P-04: a role's statement_timeout cancels the append; nothing has happened, and it is tried again."""
    store = opened()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute("ALTER DATABASE story SET statement_timeout = '100ms'")
    try:
        other = opened()
        answers: list[object] = []
        with psycopg.connect(url) as blocker, psycopg.connect(server.url, autocommit=True) as watcher:
            blocker.execute("SET statement_timeout = 0")
            blocker.execute("SELECT FROM surefoot.heads WHERE run = 'r' FOR UPDATE")
            thread = threading.Thread(target=lambda: answers.extend(other.append([writer.append(b"2")])))
            thread.start()
            waited: set[object] = set()
            while len(waited) < 2:  # so many statements have waited, one after the other
                waited |= set(
                    watcher.execute(
                        "SELECT query_start FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%append_one%'"
                    ).fetchall()
                )
            blocker.rollback()
        thread.join()
    finally:
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute("ALTER DATABASE story RESET statement_timeout")

    assert answers == [None]
    assert_whole(store, "r", 2)


# --- positions, and transactions that end in another order --------------------------------------------------


class Slow:
    """An append of another process that has its position, and is not committed yet."""

    def __init__(self, url: str, store: PostgresStore, run: str) -> None:
        self.db = psycopg.connect(url)
        (self.record,) = Writer(store, run).records(b"slow")
        self.db.execute(
            "SELECT surefoot.append_one_1(%s, NULL, NULL, 1, 1, %s, 21, 1, 1, 0, %s, %s, 0)",
            [run, self.record.at, self.record.body, self.record.seal],
        )

    def commit(self) -> None:
        self.db.commit()
        self.db.close()


def test_record_that_appears_late_with_a_lower_position_is_a_change(url, opened):
    """Whoever waits for a cancellation looks at this number, and would wait for ever."""
    store = opened()
    slow = Slow(url, store, "slow")
    store.append([Writer(store, "quick").append(b"1")])
    before = store.changes()
    assert store.changes() == before

    slow.commit()

    assert store.changes() != before
    assert store.changes() == store.changes()


def test_scan_misses_no_record_that_appears_late(url, opened):
    """A sweep marks what is needed from what was written since it began."""
    store = opened()
    slow = Slow(url, store, "slow")
    store.append([Writer(store, "quick").append(b"1")])
    upto = store.changes()

    slow.commit()
    store.append([Writer(store, "next").append(b"1")])

    seen, batch = [], store.scan(upto, 1)
    while batch:
        seen += [record.run for _, record in batch]
        batch = store.scan(batch[-1][0], 1)
    assert seen == ["slow", "next"]


def test_parts_are_not_discarded_while_a_late_record_may_need_them(url, opened):
    """The record was under way when everything was looked at, and relies on a part that nobody else needs."""
    store = opened()
    value = large_value(1)
    writer = Writer(store, "r")
    store.append([writer.append(b"1", cuts=[value])])
    slow = Slow(url, store, "slow")
    store.append([writer.append(b"2")])
    upto = store.changes()

    assert not store.discard(store.part_ids(), upto), "the lock cannot be had while it is under way"
    slow.commit()
    assert not store.discard(store.part_ids(), upto), "it was not there when the position was handed out"

    (late,) = store.scan(upto, 10)
    assert store.scan(late[0], 10) == []
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(store.discard(store.part_ids(), late[0])))
    thread.start()
    thread.join()
    assert answers == [False], "another thread has not seen what this one has"
    assert store.discard(store.part_ids(), late[0])
    assert store.part_ids() == []


def test_parts_that_another_process_deleted_are_written_again(opened):
    """A handle remembers what it has sent. Another one sweeps."""
    store, other = opened(), opened()
    value = large_value(1)
    writer = Writer(store, "r")
    store.append([writer.append(b"1", cuts=[value])])
    assert other.discard(other.part_ids(), other.changes())

    assert store.append([writer.append(b"2", cuts=[value])]) == [None]

    assert expand(value.reference, store.parts)


def test_damaged_part_is_healed_by_whoever_writes_it_again(url, opened):
    value = large_value(1)
    first = opened()
    first.append([Writer(first, "r").append(b"1", cuts=[value])])
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE surefoot.parts SET body = 'x', codec = 0")

    second = opened()
    second.append([Writer(second, "s").append(b"1", cuts=[value])])

    assert expand(value.reference, first.parts)


def test_dump_that_was_restored_elsewhere_goes_on(url, opened):
    """Transactions have numbers of the old server's then, which may be far ahead of the new one's."""
    store = opened()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    store.close()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE surefoot.entries SET xid = '99999999999'")

    store = opened()
    before = store.changes()
    store.append([writer.append(b"2")])

    assert store.changes() > before
    assert store.changes() == store.changes()
    assert [record.body for _, record in store.scan(before, 10)] == [b"2"]


# --- processes ---------------------------------------------------------------------------------------------


def test_forked_child_leaves_the_parents_connections_alone(opened):
    """Even a goodbye on an inherited socket would end the parent's session."""
    store = opened()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    assert store.worker

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            store.append([writer.append(b"child")])
            os.write(writing, b"wrote")
        except StoreUnavailable as error:
            os.write(writing, str(error).encode())
        finally:
            store.close()
            os._exit(0)
    os.waitpid(child, 0)

    assert b"is its child" in os.read(reading, 4096)
    assert store.append([writer.append(b"2")]) == [None]
    assert store.alive(store.worker)
    assert_whole(store, "r", 2)


def test_row_can_be_renewed_while_nobody_else_writes(opened):
    """Not a conflict, however often."""
    store = opened()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])

    for _ in range(2):
        assert store.append([Extend("r", writer.head, [], index_row("r"))]) == [None]
