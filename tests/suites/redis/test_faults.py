"""Servers that crash, networks that lose answers, settings that change: what was acknowledged stays so."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from surefoot.core.parts import expand
from surefoot.errors import StoreFull, StoreNotDurable, StoreUnavailable
from surefoot.store.channel import Waits
from surefoot.store.contract import Conflict, Head
from surefoot.store.redis.address import read_address
from surefoot.store.redis.scripts import APPEND, APPEND_ONE, REWRITE
from surefoot.store.redis.store import RedisStore
from surefoot.testing.conformance import Writer, assert_whole, index_row, large_value
from tests.proxy import CUT_AFTER, CUT_BEFORE, FREEZE, HOLD, PASS, Proxy
from tests.redis import Server, serving
from tests.working import wait_until

pytestmark = pytest.mark.timeout(240)  # many processes: a busy machine is no failure

WRITING = tuple(script.digest for script in (APPEND, APPEND_ONE, REWRITE))


def is_write(data: bytes) -> bool:
    return any(name in data for name in WRITING)


@pytest.fixture(params=["valkey", "redis6"])
def server(request) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def proxy(server):
    with Proxy(server.port) as made:
        yield made


@pytest.fixture
def behind(server, url, proxy, opened) -> Callable[..., RedisStore]:
    """Opens the store through the proxy."""
    name = read_address(url).name
    return lambda **waits: opened(server.url_of(name, proxy.port), **waits)


# --- the network ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [CUT_BEFORE, CUT_AFTER])
@pytest.mark.parametrize("many", [False, True])
def test_append_whose_answer_is_lost_is_there_exactly_once(behind, proxy, fault, many):
    """Either it was committed, and is found; or it was not, and is sent again. The caller cannot tell."""
    store = behind()
    writer, stranger = Writer(store, "r"), Writer(store, "other")
    store.append([writer.append(b"1"), stranger.append(b"1")])
    store.append([writer.append(b"1b")])
    stale = Writer(store, "other", head=Head(1, bytes(32)))

    proxy.arm(fault, is_write)
    batch = [writer.append(b"2")]
    if many:
        batch += [stale.append(b"x"), Writer(store, "new").append(b"1", b"2", row=index_row("new"))]
    answers = store.append(batch)

    assert proxy.struck.is_set()
    assert answers == [None, Conflict("other"), None][: len(batch)]
    assert_whole(store, "r", 3)
    assert_whole(store, "other", 1)
    assert store.append([writer.append(b"3")]) == [None]


@pytest.mark.parametrize("fault", [CUT_BEFORE, CUT_AFTER])
def test_rewrite_whose_answer_is_lost_happens_exactly_once(behind, proxy, fault):
    """A fallback that is archived twice would be evidence of something that never happened."""
    store = behind()
    writer = Writer(store, "r")
    store.append([writer.append(b"1", b"2", b"3")])
    store.rewrite(Writer(store, "s").rewrite(0, None, b"x"))  # the server knows the script by now

    proxy.arm(fault, is_write)
    assert store.rewrite(writer.rewrite(0, None, b"again", cuts=[large_value(1)])) is None

    assert proxy.struck.is_set()
    assert_whole(store, "r", 1)
    assert len(store.quarantined("r")) == 4


def test_write_that_was_delayed_in_the_network_cannot_land_late(behind, proxy):
    """The head it names has moved."""
    store = behind(silence=1.0)
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])

    proxy.arm(HOLD, is_write)
    assert store.append([writer.append(b"2")]) == [None], "sent once more, over another connection"
    assert store.append([writer.append(b"3")]) == [None]
    proxy.release()

    assert [record.body for record in assert_whole(store, "r", 3).records] == [b"1", b"2", b"3"]


def test_silent_server_does_not_hang_us_and_is_found_again(behind, proxy):
    """A black hole answers nothing, not even a refusal. Every wait ends."""
    store = behind(silence=0.5, patience=1.0, connect=1)
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

    wait_until(lambda: not _refuses(store))
    writer.head = store.read("r").head
    assert writer.head in (before, Head(2, store.read("r").records[-1].seal)), "there whole, or not at all"
    while store.append([writer.append(b"next")]) != [None]:  # what was held back may land right now
        writer.head = store.read("r").head
    assert_whole(store, "r", writer.head.seq)


def _refuses(store: RedisStore) -> bool:
    try:
        store.read("r")
    except StoreUnavailable:
        return True
    return False


class Scissors:
    """A network that is cut after so many bytes, in one direction, once."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.left = {"up": -1, "down": -1}
        self.passed = {"up": 0, "down": 0}
        self.struck = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, way: str, count: int) -> None:
        self.left[way] = count

    def disarm(self) -> None:
        self.left = {"up": -1, "down": -1}

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                upstream = socket.create_connection(("127.0.0.1", self._target))
                for way, source, sink in (("up", client, upstream), ("down", upstream, client)):
                    threading.Thread(target=self._pass, args=(way, source, sink), daemon=True).start()

    def _pass(self, way: str, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                left = self.left[way]
                self.passed[way] += len(data)
                if 0 <= left <= len(data):
                    self.left[way] = -1
                    self.struck += 1
                    sink.sendall(data[:left])
                    break
                if left > 0:
                    self.left[way] = left - len(data)
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def cut_everywhere(server: Server, url: str, opened: Callable[..., RedisStore], every: int) -> tuple[int, int]:
    """An append is cut after each n-th byte of what is sent and of what is answered. How often; how many appends."""
    scissors = Scissors(server.port)
    try:
        store = opened(server.url_of(read_address(url).name, scissors.port))
        writer, done = Writer(store, "r"), 0
        for _ in range(2):
            before = dict(scissors.passed)
            assert store.append([writer.append(b"%04d" % done)]) == [None]
            done += 1
        sizes = {way: scissors.passed[way] - before[way] for way in before}
        for way, size in sizes.items():
            for count in range(0, size, every):
                scissors.arm(way, count)
                assert store.append([writer.append(b"%04d" % done)]) == [None]
                scissors.disarm()
                done += 1
        bodies = [record.body for record in assert_whole(store, "r", done).records]
        assert bodies == [b"%04d" % n for n in range(done)]
    finally:
        scissors.close()
    return scissors.struck, done


def test_answers_and_requests_that_are_cut_anywhere_leave_no_gap_and_nothing_twice(server, url, opened):
    struck, done = cut_everywhere(server, url, opened, every=23)

    assert struck > 10
    assert done > struck


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_every_byte_of_an_exchange_is_a_place_to_cut(server, url, opened):
    struck, done = cut_everywhere(server, url, opened, every=1)

    assert struck > 300, f"{struck} cuts in {done} appends"


# --- the server -------------------------------------------------------------------------------------


def test_server_that_is_killed_under_load_loses_nothing_that_was_acknowledged(tmp_path, server):
    """Whoever writes at that moment waits, and finds out by reading what became of it."""
    with serving(tmp_path / "own", server.kind) as own:
        stores = [RedisStore.open(read_address(own.url), create=True) for _ in range(2)]
        acknowledged: dict[str, list[bytes]] = {f"r{n}": [] for n in range(4)}
        failures: list[BaseException] = []
        over = threading.Event()

        def work(n: int) -> None:
            writer, mine = Writer(stores[n % 2], f"r{n}"), acknowledged[f"r{n}"]
            try:
                while not over.is_set():
                    body = b"%d" % len(mine)
                    more: dict[str, Any] = {"row": index_row(writer.run)} if n >= 2 else {}
                    assert stores[n % 2].append([writer.append(body, **more)]) == [None]
                    mine.append(body)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            reached = {run: len(mine) for run, mine in acknowledged.items()}
            wait_until(
                lambda reached=reached: failures or all(len(acknowledged[run]) > reached[run] + 5 for run in reached)
            )
            own.restart()
        reached = {run: len(mine) for run, mine in acknowledged.items()}
        wait_until(lambda: failures or all(len(acknowledged[run]) > reached[run] for run in reached))
        over.set()
        for thread in threads:
            thread.join()

        assert failures == []
        for run, mine in acknowledged.items():
            assert [record.body for record in assert_whole(stores[0], run, len(mine)).records] == mine
        for store in stores:
            store.close()


def test_scripts_that_the_server_forgot_are_sent_again(server, opened):
    """SCRIPT FLUSH, a restart, a failover: the server knows no names of scripts any more."""
    store = opened()
    writer = Writer(store, "r")
    for n in range(3):
        assert store.append([writer.append(b"%d" % n, cuts=[large_value(n)])]) == [None]
        server.ask("SCRIPT", "FLUSH")
        assert store.read("r").head == writer.head

    assert expand(large_value(2).reference, store.parts)


# --- settings that change while the store is open ---------------------------------------------------


def test_setting_that_is_changed_under_an_open_store_is_told_at_the_next_append(tmp_path, server):
    """Else every append from then on would be acknowledged and unsafe."""
    with serving(tmp_path / "own", server.kind) as own:
        store = RedisStore.open(read_address(own.url), create=True)
        writer = Writer(store, "r")
        store.append([writer.append(b"1")])
        for name, wrong, right in (("appendfsync", "everysec", "always"), ("appendonly", "no", "yes")):
            own.ask("CONFIG", "SET", name, wrong)
            with pytest.raises(StoreNotDurable, match=name) as found:
                store.append([writer.append(b"x")])
            assert "CONFIG SET" in str(found.value)
            own.ask("CONFIG", "SET", name, right)
            wait_until(lambda: "aof_rewrite_in_progress:0" in str(own.ask("INFO", "persistence")))
            writer.head = store.read("r").head
            assert store.append([writer.append(b"on")]) == [None]
        store.close()


def test_every_append_waits_for_as_many_replicas_as_the_url_says(tmp_path, server):
    with serving(tmp_path / "own", server.kind) as own:
        replica = Server(tmp_path / "replica", server.kind)
        replica.start(replicaof=f"127.0.0.1 {own.port}")
        try:
            wait_until(lambda: "master_link_status:up" in str(replica.ask("INFO", "replication")))
            where = read_address(own.url_of("surefoot", replicas=1))
            store = RedisStore.open(where, create=True, waits=Waits(silence=2.0, patience=0.5))
            writer = Writer(store, "r")
            assert store.append([writer.append(b"1")]) == [None]

            replica.stop(signal.SIGKILL)
            with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
                store.append([writer.append(b"2")])
            store.close()
        finally:
            replica.stop()


def test_full_memory_is_told_and_nothing_is_torn(tmp_path, server):
    with serving(tmp_path / "own", server.kind) as own:
        store = RedisStore.open(read_address(own.url), create=True)
        writers = [Writer(store, f"r{n}") for n in range(10)]
        store.append([writer.append(b"1") for writer in writers])
        own.ask("CONFIG", "SET", "maxmemory", 1000)
        heads = [writer.head for writer in writers]

        with pytest.raises(StoreFull, match="prune"):
            store.append([writer.append(b"2") for writer in writers])
        own.ask("CONFIG", "SET", "maxmemory", 0)

        assert [store.read(writer.run).head for writer in writers] == heads
        store.close()


# --- leases -----------------------------------------------------------------------------------------


def test_worker_that_cannot_be_heard_is_dead_for_others_only_after_it_knows_itself(behind, opened, proxy, server):
    """An effect must not begin under a lease that others may see as over."""
    store, other = behind(lease=3.0, silence=0.5), opened(lease=3.0)
    worker = store.worker
    assert store.holds()
    assert other.alive(worker)

    proxy.arm(FREEZE)
    wait_until(lambda: not store.holds())
    assert other.alive(worker), "it stops first"
    wait_until(lambda: not other.alive(worker))
    assert not store.holds()

    proxy.arm(PASS)
    wait_until(store.holds)
    assert other.alive(worker)
    assert store.worker == worker
    assert store.lease.losses == 1


def test_worker_that_leaves_in_good_order_is_dead_at_once(opened):
    store, other = opened(), opened()
    worker = store.worker

    store.close()

    assert not other.alive(worker)
    assert not store.holds()


def test_nobody_is_dead_because_the_server_was_down(tmp_path, server):
    """Nobody could renew. After a restart each has the length of a lease to come back."""
    with serving(tmp_path / "own", server.kind) as own:
        where = read_address(own.url)
        store = RedisStore.open(where, create=True, waits=Waits(lease=60.0))
        assert store.worker
        living, dead, now = "a" * 32, "b" * 32, int(time.time() * 1e6)
        own.ask("ZADD", f"{where.prefix}workers", now - 300_000_000, living, now - 7_200_000_000, dead)
        assert not store.alive(living)
        own.ask("ZREM", f"{where.prefix}workers", store.worker)
        own.restart()
        late = RedisStore.open(where, create=False, waits=Waits(lease=60.0))

        assert late.alive(living), "as if the server had been down for five minutes"
        assert not late.alive(dead)
        impatient = RedisStore.open(where, create=False, waits=Waits(lease=0.001))
        assert not impatient.alive(living)
        for one in (impatient, late, store):
            one.close()
