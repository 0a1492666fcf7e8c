"""Servers that crash, networks that lose answers, standbys that know too little: what was acknowledged stays so."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import psycopg
import pytest

from surefoot.core.urls import parse
from surefoot.errors import JournalRegressed, StoreNotDurable, StoreUnavailable
from surefoot.store.channel import Waits
from surefoot.store.contract import Conflict, Head
from surefoot.store.postgres.store import PostgresStore
from surefoot.testing.conformance import Writer, assert_whole, index_row, large_value
from tests.postgres import Server, command, serving
from tests.proxy import CUT_AFTER, CUT_BEFORE, FREEZE, HOLD, PASS, Proxy

_DEADLINE = 30.0


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + _DEADLINE
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def is_append(data: bytes) -> bool:
    return b"append_" in data or b"rewrite_" in data


@pytest.fixture
def proxy(server):
    with Proxy(server.port) as made:
        yield made


@pytest.fixture
def behind(server, proxy, opened, url) -> Callable[..., PostgresStore]:
    """Opens the store through the proxy."""
    return lambda **waits: opened(server.url_of("story", proxy.port), **waits)


# --- the network -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [CUT_BEFORE, CUT_AFTER])
@pytest.mark.parametrize("many", [False, True])
def test_append_whose_answer_is_lost_is_there_exactly_once(behind, proxy, fault, many):
    """W-07: either it was committed, and is found; or it was not, and is sent again. The caller cannot tell."""
    store = behind()
    writer, stranger = Writer(store, "r"), Writer(store, "other")
    store.append([writer.append(b"1"), stranger.append(b"1")])
    stale = Writer(store, "other", head=Head(1, bytes(32)))

    proxy.arm(fault, is_append)
    batch = [writer.append(b"2")]
    if many:
        batch += [stale.append(b"x"), Writer(store, "new").append(b"1", b"2", row=index_row("new"))]
    answers = store.append(batch)

    assert proxy.struck.is_set()
    assert answers == [None, Conflict("other"), None][: len(batch)]
    assert_whole(store, "r", 2)
    assert_whole(store, "other", 1)
    assert store.append([writer.append(b"3")]) == [None]


@pytest.mark.parametrize("fault", [CUT_BEFORE, CUT_AFTER])
def test_rewrite_whose_answer_is_lost_happens_exactly_once(behind, proxy, fault):
    """A fallback that is archived twice would be evidence of something that never happened."""
    store = behind()
    writer = Writer(store, "r")
    store.append([writer.append(b"1", b"2", b"3")])

    proxy.arm(fault, is_append)
    assert store.rewrite(writer.rewrite(0, None, b"again", cuts=[large_value(1)])) is None

    assert proxy.struck.is_set()
    assert_whole(store, "r", 1)
    assert len(store.quarantined("r")) == 4


def test_write_that_was_delayed_in_the_network_cannot_land_late(behind, proxy):
    """W-08: the head it names has moved."""
    store = behind(silence=0.3)
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])

    proxy.arm(HOLD, is_append)
    assert store.append([writer.append(b"2")]) == [None], "sent once more, over another connection"
    assert store.append([writer.append(b"3")]) == [None]
    proxy.release()

    assert [record.body for record in assert_whole(store, "r", 3).records] == [b"1", b"2", b"3"]


def test_silent_server_does_not_hang_us_and_is_found_again(behind, proxy):
    """W-07: a black hole answers nothing, not even a refusal. Every wait ends."""
    store = behind(silence=0.2, patience=0.6, connect=1)
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])

    proxy.arm(FREEZE)
    before = writer.head
    with pytest.raises(StoreUnavailable, match="cannot be reached") as found:
        store.append([writer.append(b"2")])
    with pytest.raises(StoreUnavailable):
        store.read("r")
    assert "found out by reading" in str(found.value)
    proxy.arm(PASS)

    until(lambda: not _refuses(store))
    writer.head = store.read("r").head
    assert writer.head in (before, Head(2, store.read("r").records[-1].seal)), "there whole, or not at all"
    assert store.append([writer.append(b"next")]) == [None]
    assert_whole(store, "r", writer.head.seq)


def _refuses(store: PostgresStore) -> bool:
    try:
        store.read("r")
    except StoreUnavailable:
        return True
    return False


# --- the server --------------------------------------------------------------------------------------------


def test_server_that_crashes_under_load_loses_nothing_that_was_acknowledged(server, opened):
    """P-01: whoever writes at that moment waits, and finds out by reading what became of it."""
    stores = [opened(), opened()]
    acknowledged: dict[str, list[bytes]] = {f"r{n}": [] for n in range(4)}
    failures: list[BaseException] = []
    over = threading.Event()

    def work(n: int) -> None:
        store = stores[n % 2]
        writer, mine = Writer(store, f"r{n}"), acknowledged[f"r{n}"]
        try:
            while not over.is_set():
                body = b"%d" % len(mine)
                more = {"row": index_row(writer.run)} if n >= 2 else {}
                assert store.append([writer.append(body, **more)]) == [None]
                mine.append(body)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        reached = {run: len(mine) for run, mine in acknowledged.items()}
        until(lambda reached=reached: failures or all(len(acknowledged[run]) > reached[run] + 5 for run in reached))
        server.stop(signal.SIGQUIT)
        server.start()
    reached = {run: len(mine) for run, mine in acknowledged.items()}
    until(lambda: failures or all(len(acknowledged[run]) > reached[run] for run in reached))
    over.set()
    for thread in threads:
        thread.join()

    assert failures == []
    for run, mine in acknowledged.items():
        stored = assert_whole(stores[0], run, len(mine))
        assert [record.body for record in stored.records] == mine


def test_session_that_was_ended_by_the_administrator_is_made_again(url, opened):
    """P-01: kill -9 of a backend, pg_terminate_backend, an idle time-out."""
    store = opened()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    for _ in range(3):
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'surefoot'")

        assert store.append([writer.append(b"next")]) == [None]
        assert store.read("r").head == writer.head


def test_two_processes_fight_for_one_run(url, opened):
    """Each append is granted once, whoever sends it; the losers have written nothing."""
    store = opened()
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, url], stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    mine = 0
    while mine < 40:
        if store.append([Writer(store, "r", head=store.read("r").head).append(b"parent")]) == [None]:
            mine += 1
    said, _ = child.communicate()

    assert child.returncode == 0
    assert int(said) == 40
    bodies = [record.body for record in assert_whole(store, "r", 80).records]
    assert bodies.count(b"parent") == bodies.count(b"child") == 40


_CHILD = """
import sys
from surefoot.store.open import open_store
from surefoot.testing.conformance import Writer
store = open_store(sys.argv[1], create=True)
mine = 0
while mine < 40:
    if store.append([Writer(store, "r", head=store.read("r").head).append(b"child")]) == [None]:
        mine += 1
print(mine)
"""


# --- lost history ------------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path):
    """A server of its own, for tests that put its files back."""
    with serving(tmp_path) as started:
        yield started


def test_older_state_of_the_server_is_noticed_and_can_be_adopted(own, tmp_path, monkeypatch):
    """P-02: an old backup was put back. The anchor is on our side, and knows better."""
    where = parse(own.url, ["postgresql"])
    store = PostgresStore.open(where, create=True)
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    own.stop(signal.SIGINT)
    shutil.copytree(own.data, tmp_path / "old")
    own.start()
    store.append([writer.append(b"2")])
    lost = store.changes()
    own.stop(signal.SIGINT)
    shutil.rmtree(own.data)
    shutil.move(tmp_path / "old", own.data)
    own.start()

    with pytest.raises(JournalRegressed, match="older than it once was") as found:
        store.append([writer.append(b"3")])
    assert found.value.facts["expected"] == lost
    store.close()
    with pytest.raises(JournalRegressed):
        PostgresStore.open(where, create=True)
    monkeypatch.setenv("SUREFOOT_ANCHORS", str(tmp_path / "nobody"))
    PostgresStore.open(where, create=False).close()  # somebody who has seen nothing cannot know
    monkeypatch.delenv("SUREFOOT_ANCHORS")

    regressed = PostgresStore.open(where, create=False, adopting=True)
    writer = Writer(regressed, "r", head=regressed.read("r").head)
    assert regressed.expected == lost
    assert regressed.rewrite_together(
        [writer.rewrite(1, writer.head, b"fell back", archive=True)], beyond=regressed.expected
    )
    regressed.close()

    store = PostgresStore.open(where, create=True)
    assert [record.body for record in assert_whole(store, "r", 2).records] == [b"1", b"fell back"]
    assert store.changes() > lost
    assert store.append([writer.append(b"3")]) == [None]
    store.close()


@pytest.mark.parametrize("archive", [False, True])
def test_record_that_was_taken_out_on_record_is_no_lost_record(opened, monkeypatch, tmp_path, archive):
    """The last thing this process wrote was pruned, or set aside, by a process on another host."""
    store = opened()
    writer = Writer(store, "r")
    store.append([writer.append(b"1", b"2")])
    store.close()
    monkeypatch.setenv("SUREFOOT_ANCHORS", str(tmp_path / "elsewhere"))
    other = opened()
    other.rewrite(Writer(other, "r", head=writer.head).rewrite(0, None, b"instead", archive=archive))
    monkeypatch.delenv("SUREFOOT_ANCHORS")

    assert_whole(opened(create=False), "r", 1)


def test_record_that_is_gone_without_a_word_is_missed(url, opened):
    """Somebody deleted rows, or another history took their place."""
    store = opened()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    store.append([writer.append(b"2")])
    store.close()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DELETE FROM surefoot.entries WHERE seq = 2")

    with pytest.raises(JournalRegressed, match="ends at record 1"):
        opened(create=False)


def test_server_whose_positions_went_back_is_noticed_while_connected(url, opened):
    """Behind a pooler a failover may go by without a reconnect."""
    store = opened()
    writer = Writer(store, "r")
    for body in (b"1", b"2", b"3"):
        store.append([writer.append(body)])
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DELETE FROM surefoot.entries WHERE seq > 1")
        db.execute("UPDATE surefoot.heads SET seq = 1, seal = (SELECT seal FROM surefoot.entries)")
        db.execute("SELECT setval('surefoot.positions', 1)")
    old = Writer(store, "r", head=store.read("r").head)

    with pytest.raises(JournalRegressed):
        store.append([old.append(b"2 again")])
    with pytest.raises(JournalRegressed):
        store.append([old.append(b"2 again"), Writer(store, "s").append(b"1")])

    assert_whole(store, "r", 1)


def test_replica_is_refused(own, tmp_path):
    """P-06: what it shows may be old, and a run must not be judged by it."""
    where = parse(own.url, ["postgresql"])
    store = PostgresStore.open(where, create=True)
    store.append([Writer(store, "r").append(b"1")])
    replica = Server(tmp_path / "replica")
    replica.folder.mkdir()
    subprocess.run(
        [*command("pg_basebackup"), "-h", "127.0.0.1", "-p", str(own.port), "-U", "app", "-D", str(replica.data), "-R",
         "-c", "fast", "-X", "stream"],
        check=True, capture_output=True,
    )  # fmt: skip
    replica.start()
    try:
        with pytest.raises(StoreNotDurable, match="replica"):
            PostgresStore.open(parse(replica.url, ["postgresql"]), create=False)

        # It falls behind, and is promoted all the same.
        replica.stop(signal.SIGINT)
        store.append([Writer(store, "s").append(b"never replicated")])
        store.close()
        own.stop(signal.SIGINT)
        (replica.data / "standby.signal").unlink()
        replica.start()
        with pytest.raises(JournalRegressed, match="standby promoted"):
            PostgresStore.open(parse(replica.url, ["postgresql"]), create=True)
    finally:
        replica.stop()


# --- leases ------------------------------------------------------------------------------------------------


def test_worker_that_cannot_be_heard_is_dead_for_others_only_after_it_knows_itself(behind, opened, proxy):
    """W-03: an effect must not begin under a lease that others may see as over."""
    store, other = behind(lease=0.9, silence=0.3), opened(lease=0.9)
    worker = store.worker
    assert store.holds()
    assert other.alive(worker)

    proxy.arm(FREEZE)
    until(lambda: not store.holds())
    assert other.alive(worker), "it stops first"
    until(lambda: not other.alive(worker))
    assert not store.holds()

    proxy.arm(PASS)
    until(store.holds)
    assert other.alive(worker)
    assert store.worker == worker
    assert store.lease.losses == 1


def test_worker_that_leaves_in_good_order_is_dead_at_once(opened):
    """Whoever waits for its runs need not wait for the lease to end."""
    store, other = opened(), opened()
    worker = store.worker

    store.close()

    assert not other.alive(worker)
    assert not store.holds()


def test_heartbeats_go_on_while_everything_else_waits(url, opened):
    """No statement of ours, and no code of the user's, may keep the lease from being renewed."""
    store, other = opened(lease=0.9), opened()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    worker = store.worker
    with psycopg.connect(url) as blocker:
        blocker.execute("SELECT FROM surefoot.heads WHERE run = 'r' FOR UPDATE")
        thread = threading.Thread(target=store.append, args=([writer.append(b"2")],))
        thread.start()
        before = store.lease.renewals
        until(lambda: store.lease.renewals > before + 4)
        assert other.alive(worker)
        assert store.holds()
        blocker.rollback()
    thread.join()

    assert store.lease.losses == 0


def test_nobody_is_dead_because_the_server_was_down(own):
    """Nobody could renew. After a restart each has the length of a lease to come back."""
    where = parse(own.url, ["postgresql"])
    store = PostgresStore.open(where, create=True, waits=Waits(lease=60.0))
    with psycopg.connect(own.url, autocommit=True) as db:
        names = {"living": "a" * 32, "dead": "b" * 32}
        row = "INSERT INTO surefoot.workers VALUES (%s, 'h', 1, clock_timestamp() - %s::interval)"
        db.execute(row, [names["living"], "5 minutes"])
        db.execute(row, [names["dead"], "2 hours"])
        assert store.worker
        # The server has just been started: as if it had been down for five minutes.
        assert store.alive(names["living"])
        assert not store.alive(names["dead"])
        impatient = PostgresStore.open(where, create=False, waits=Waits(lease=0.001))
        assert not impatient.alive(names["living"])
        impatient.close()
    store.close()


def test_clock_is_the_servers(opened, caplog, monkeypatch):
    """Many hosts, one clock. A machine whose own is wrong is told so, once."""
    real = time.time
    monkeypatch.setattr("surefoot.store.lease.time.time", lambda: real() + 3600)
    store = opened(lease=0.3)
    assert store.worker
    until(lambda: store.lease.renewals > 2)

    assert abs(store.now() / 1e6 - real()) < 5
    assert 3590 < store.vitals()["clock_difference_seconds"] < 3610
    assert caplog.text.count("ahead of the server's") == 1
