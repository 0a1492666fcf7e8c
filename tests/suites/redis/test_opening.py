"""Which servers are believed, and what their refusal says."""

from __future__ import annotations

import re
import shlex
import threading

import pytest

from surefoot.cli.main import main
from surefoot.core.parts import expand
from surefoot.errors import NotFound, SchemaMismatch, StoreNotDurable, StoreUnavailable, UsageError
from surefoot.store.contract import Conflict, Head, RunQuery
from surefoot.store.open import backend_of, close_all, open_store, shown
from surefoot.store.redis.address import read_address
from surefoot.store.redis.store import RedisStore
from surefoot.testing.conformance import Writer, assert_whole, index_row, large_value
from tests.postgres import free_port
from tests.redis import REDIS, VALKEY, Server, serving
from tests.working import wait_until

pytestmark = pytest.mark.timeout(240)  # many processes: a busy machine is no failure

CARELESS = [
    ({"appendonly": "no"}, "appendonly is off"),
    ({"appendfsync": "everysec"}, "appendfsync is everysec"),
    ({"appendfsync": "no"}, "appendfsync is no"),
    ({"maxmemory-policy": "allkeys-lru"}, "maxmemory-policy is allkeys-lru"),
]


@pytest.fixture(params=[VALKEY, REDIS])
def own(request, tmp_path):
    with serving(tmp_path / "server", request.param) as running:
        yield running
        close_all()


@pytest.mark.parametrize(("settings", "said"), CARELESS)
def test_careless_server_is_refused_until_the_cure_is_pasted(own, settings, said):
    """What was acknowledged must survive a power cut; the settings are read back, not assumed."""
    for name, value in settings.items():
        own.ask("CONFIG", "SET", name, value)
    with pytest.raises(StoreNotDurable, match=said) as found:
        RedisStore.open(read_address(own.url), create=True)

    cure = re.search(r"CONFIG SET \S+ [\w-]+", str(found.value))
    assert cure, str(found.value)
    own.ask(*shlex.split(cure[0]))
    while "aof_rewrite_in_progress:1" in str(own.ask("INFO", "persistence")):
        pass
    RedisStore.open(read_address(own.url), create=True).close()


def test_window_without_syncs_is_refused_where_nobody_can_wait_for_the_disk(own):
    """While the log is rewritten, nothing is synced. WAITAOF waits; Redis 6 has none."""
    own.ask("CONFIG", "SET", "no-appendfsync-on-rewrite", "yes")
    if own.kind == VALKEY:
        store = RedisStore.open(read_address(own.url), create=True)
        store.append([Writer(store, "r").append(b"1")])
        store.close()
        return
    with pytest.raises(StoreNotDurable, match="no-appendfsync-on-rewrite"):
        RedisStore.open(read_address(own.url), create=True)


def test_doctor_names_what_a_server_could_do_better(own, monkeypatch, capsys):
    own.ask("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    monkeypatch.setenv("SUREFOOT_STORE", own.url)
    open_store(own.url, create=True)
    close_all()

    assert main(["doctor"]) == 0

    said = capsys.readouterr().out
    assert "our keys have no time to live" in said
    assert "no limit is set" in said
    assert "appendfsync=always" in said
    own.ask("CONFIG", "SET", "appendfsync", "everysec")
    close_all()
    assert main(["doctor"]) != 0
    assert "CONFIG SET appendfsync always" in capsys.readouterr().out


def test_server_that_tells_nobody_needs_a_declaration(tmp_path):
    """A managed service refuses CONFIG. Somebody has to have read its contract."""
    with serving(tmp_path, VALKEY) as own:
        own.ask("ACL", "SETUSER", "app", "on", ">geheim", "~*", "&*", "+@all", "-config")
        where = own.url.replace("redis://", "redis://app:geheim@")
        with pytest.raises(StoreNotDurable, match="CONFIG GET is refused") as found:
            RedisStore.open(read_address(where), create=True)
        assert "durability=declared" in str(found.value)
        assert "geheim" not in str(found.value)

        store = RedisStore.open(read_address(f"{where}&durability=declared"), create=True)
        store.append([Writer(store, "r").append(b"1")])
        assert "geheim" not in f"{store.url} {store.durability()}"
        store.close()
        with pytest.raises(StoreUnavailable, match="user or the password") as refused:
            RedisStore.open(read_address(where.replace("geheim", "falsch")), create=True)
        assert "falsch" not in f"{refused.value!r} {refused.value.__cause__!r}"


def test_reading_makes_nothing(server, url):
    with pytest.raises(NotFound, match="no store in redis://127"):
        RedisStore.open(read_address(url), create=False)

    assert server.ask("KEYS", f"{read_address(url).prefix}*") == []


def test_store_is_made_once_and_found_again(url, opened):
    first = opened()
    first.append([Writer(first, "r").append(b"1")])

    assert opened(create=False).id == opened().id == first.id
    assert open_store(url, create=False).read("r").records == first.read("r").records
    assert open_store(url, create=False) is open_store(url, create=False)


def test_stores_of_different_names_are_apart(server, opened):
    one, two = opened(server.fresh()), opened(server.fresh())
    one.append([Writer(one, "r").append(b"1")])

    assert one.id != two.id
    assert two.read("r").head is None


def test_processes_that_make_the_store_at_once_make_one(opened):
    ids: list[bytes] = []
    start = threading.Barrier(6)

    def work() -> None:
        start.wait()
        ids.append(opened().id)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(ids) == 6
    assert len(set(ids)) == 1


def test_store_of_a_newer_version_is_refused(server, url, opened):
    opened().close()
    server.ask("HSET", f"{read_address(url).prefix}meta", "format", 99)

    with pytest.raises(SchemaMismatch, match="format 99"):
        opened()


def test_unix_socket_and_database_are_ways_to_a_store(tmp_path):
    with serving(tmp_path / "s", VALKEY, unixsocket=str(tmp_path / "sock")) as own:
        where = f"unix://{tmp_path}/sock?db=3"
        store = open_store(where, create=True)
        store.append([Writer(store, "r").append(b"1")])

        other = RedisStore.open(read_address(f"redis://127.0.0.1:{own.port}/3"), create=False)
        assert other.id == store.id
        other.close()
        close_all()


def test_sentinels_name_the_primary(tmp_path):
    with serving(tmp_path / "s", VALKEY) as own:
        config = tmp_path / "sentinel.conf"
        config.write_text(f"sentinel monitor shop 127.0.0.1 {own.port} 1\n")
        sentinel = Server(tmp_path / "sentinel")
        sentinel.command = [str(config), "--sentinel", "--port", str(sentinel.port), "--bind", "127.0.0.1"]
        sentinel.start()
        try:
            store = open_store(f"redis+sentinel://127.0.0.1:{sentinel.port}/shop", create=True)
            assert store.append([Writer(store, "r").append(b"1")]) == [None]
            assert store.url.startswith("redis+sentinel://")
            close_all()
            with pytest.raises(StoreUnavailable, match="nobody"):
                RedisStore.open(read_address(f"redis+sentinel://127.0.0.1:{sentinel.port}/nobody"), create=True)
        finally:
            sentinel.stop()


def test_store_in_a_cluster_is_found_from_any_node(tmp_path):
    """All its keys are in one slot; a node that does not have it says who does."""
    nodes = [Server(tmp_path / str(n), cluster_enabled="yes", cluster_port=str(free_port())) for n in range(2)]
    for node in nodes:
        node.start()
    try:
        for node, slots in zip(nodes, ((0, 8191), (8192, 16383)), strict=True):
            node.ask("CLUSTER", "ADDSLOTSRANGE", *slots)
        nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, nodes[1].settings["cluster_port"])
        for node in nodes:
            wait_until(lambda node=node: b"cluster_state:ok" in node.ask("CLUSTER", "INFO"))
        for name in ("one", "two", "three", "four"):
            store = open_store(nodes[0].url_of(name), create=True)
            assert store.append([Writer(store, "r").append(b"1", row=index_row("r"))]) == [None]
            assert store.worker
            other = RedisStore.open(read_address(nodes[1].url_of(name)), create=False)
            assert other.read("r") == store.read("r")
            other.close()
        close_all()
        assert all(node.ask("DBSIZE") for node in nodes), "all four were in one node: the test shows nothing"
    finally:
        for node in nodes:
            node.stop()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://h:6379/0?durability=perhaps", "durability is fsync, declared or none"),
        ("redis://h:6379/0?colour=red", "no option 'colour'"),
        ("redis://h:6379/0?name=a%20b", "name of a store"),
        ("redis://h:6379/zero", "whole number"),
        ("redis://h:port/0", "whole number"),
        ("unix:relative", "unix URL"),
        ("unix://h/s", "three slashes"),
        ("redis+sentinel://h", "HOST,HOST/SERVICE"),
        ("redis://:ge/heim@h:1/0", "%2F"),
    ],
)
def test_url_that_cannot_be_meant_is_refused_without_its_password(url, said):
    with pytest.raises(UsageError, match=re.escape(said)) as found:
        open_store(url, create=True)

    assert "heim" not in str(found.value)


def test_server_that_is_not_there_is_unavailable_and_no_password_is_shown(caplog):
    where = "redis://app:g%40heim@127.0.0.1:1/0"

    with pytest.raises(StoreUnavailable) as found:
        open_store(where, create=True)

    assert "app:***@127.0.0.1" in str(found.value)
    assert "heim" not in f"{found.value!r} {found.value.__cause__!r} {caplog.text} {shown(where)}"
    with pytest.raises(UsageError, match="BGREWRITEAOF"):
        backend_of(where).file(where)


def test_missing_driver_names_the_cure(monkeypatch):
    def no_driver(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("surefoot.store.redis.connection.import_module", no_driver)
    with pytest.raises(UsageError, match=r"pip install 'surefoot\[redis\]'"):
        open_store("redis://127.0.0.1:1/0", create=True)


# --- what only this store can get wrong -------------------------------------------------------------


def test_run_with_too_few_records_is_a_conflict_for_itself_alone(server, url, opened):
    """Evicted, or deleted by hand. Its reader will see it; strangers in the batch go through."""
    store = opened()
    bad, good = Writer(store, "bad"), Writer(store, "good")
    store.append([bad.append(b"1"), good.append(b"1")])
    server.ask("DEL", f"{read_address(url).prefix}j:bad")

    assert store.append([bad.append(b"2"), good.append(b"2")]) == [Conflict("bad"), None]

    assert_whole(store, "good", 2)


def test_parts_that_another_process_deleted_are_written_again(opened):
    """A handle remembers what it has sent. Another one sweeps."""
    store, other = opened(), opened()
    value, writer = large_value(1), Writer(store, "r")
    store.append([writer.append(b"1", cuts=[value])])
    assert other.discard(other.part_ids(), other.changes())

    assert store.append([writer.append(b"2", cuts=[value])]) == [None]

    assert expand(value.reference, store.parts)


def test_later_wish_for_a_run_is_judged_after_the_earlier_one(opened):
    store = opened()
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    stale = Writer(store, "r", head=Head(7, bytes(32)))

    assert store.append([stale.append(b"8"), writer.append(b"2"), stale.append(b"9")]) == [
        Conflict("r"), None, Conflict("r"),
    ]  # fmt: skip


@pytest.mark.parametrize("row", [{"workflow": "\ud800"}, {"queue": "\ud800"}])
def test_text_that_cannot_be_stored_is_the_callers_mistake(opened, row):
    store = opened()
    with pytest.raises(UsageError, match="cannot be stored"):
        store.append([Writer(store, "r").append(b"1", row=index_row("r", **row))])

    assert store.read("r").head is None


def test_damaged_row_hides_no_run(server, url, opened):
    store = opened()
    store.append([Writer(store, "r").append(b"1", row=index_row("r"))])
    server.ask("HSET", f"{read_address(url).prefix}rows", "r", "nonsense")

    assert [(one.run, one.row) for one in store.runs(RunQuery())] == [("r", None)]
    server.ask("DEL", f"{read_address(url).prefix}rows")
    assert store.lost_rows() == ["r"]
    assert [(one.run, one.row) for one in store.runs(RunQuery(status="done"))] == [("r", None)]


def test_no_key_has_a_time_to_live_and_all_are_in_one_slot(server, url, opened):
    """Else a server may throw them away, or a cluster may keep them apart."""
    store = opened()
    assert store.worker
    for n in range(3):
        row = index_row(f"r{n}", status="queued", wake=1, queue="q", labels={"a": "b"}, need="question")
        store.append([Writer(store, f"r{n}").append(b"1", row=row, cuts=[large_value(n)])])
    store.rewrite(Writer(store, "x").rewrite(0, None, b"1"))

    keys = server.ask("KEYS", f"{read_address(url).prefix}*")

    assert len(keys) > 10
    assert {server.ask("TTL", key) for key in keys} == {-1}
    assert {key.split(b"}")[0] for key in keys} == {read_address(url).prefix.partition("}")[0].encode()}
