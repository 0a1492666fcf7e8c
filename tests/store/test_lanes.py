"""Handing out work from a SQLite file: to real processes, by index, and without a write where there is none."""

from __future__ import annotations

import re
import signal
import time
from importlib.resources import files

import apsw
import pytest

from surefoot.errors import StoreUnavailable
from surefoot.store.contract import Limit, RunQuery
from surefoot.store.memory import MemoryStore
from surefoot.store.postgres import schema as schema_of_postgres
from surefoot.store.postgres import store as postgres
from surefoot.store.rules import SAID_KINDS
from surefoot.store.sqlite import lanes, schema
from surefoot.store.sqlite import store as sqlite
from surefoot.testing.conformance import due, index_row, put, taken, wish

HOUR_MICROS = 3_600_000_000
CLAIM = """
from surefoot.testing.conformance import index_row, put
store = open_here()
put(store, index_row("r", worker=store.worker))
print("claimed", flush=True)
sys.stdin.readline()
"""


def test_claims_of_a_process_are_free_once_it_is_killed(place):
    """By its lock, at once: neither before it is dead nor minutes after."""
    store = place.open()
    child = place.child(CLAIM)
    assert child.stdout.readline() == "claimed\n"
    assert taken(store) == []

    child.send_signal(signal.SIGKILL)
    child.wait()

    assert taken(store) == ["r"]


def test_listener_hears_of_what_another_process_wrote(place):
    """Without waiting for its time to be over."""
    store = place.open()
    store.listen(0)
    child = place.child(
        "from surefoot.testing.conformance import due, put\nstore = open_here()\n"
        "print('open', flush=True); sys.stdin.readline(); put(store, due('r')); store.close()"
    )
    assert child.stdout.readline() == "open\n"
    store.listen(0)
    child.stdin.write("\n")
    child.stdin.flush()

    until = time.monotonic() + 20
    while not (found := taken(store)) and time.monotonic() < until:
        store.listen(600)

    assert found == ["r"]


@pytest.mark.parametrize("limits", [[], [Limit("q", concurrency=0)], [Limit("q", starts=0)]])
def test_look_that_finds_nothing_writes_nothing(place, limits):
    """Idle workers look many times a minute: they must not keep the disk awake, nor wake each other."""
    store = place.open()
    put(store, due("asleep", wake=2**60), due("waiting", wake=None), *(due(run, queue="q") for run in "ab" if limits))
    log, before = place.wal.stat(), store._written()

    for _ in range(3):
        assert taken(store, limits=limits) == []

    assert store._written() == before
    assert place.wal.stat().st_mtime_ns == log.st_mtime_ns


def test_looking_reads_no_run_that_is_asleep_or_somebody_elses():
    """Ten thousand of them must cost an idle worker nothing."""
    connection = apsw.Connection(":memory:")
    for statement in schema.SCHEMA.values():
        connection.execute(statement)
    questions = [value for value in vars(lanes).values() if isinstance(value, str) and "FROM runs" in value]
    assert len(questions) == 7

    for question in questions:
        values = (None,) * (2 if "?2" in question else question.count("?"))
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {question}", values)]
        looks = [line for line in plan if line.startswith(("SCAN r", "SEARCH r"))]
        assert looks
        assert all(line.startswith("SEARCH") and ("runs_by_" in line or "(run=?)" in line) for line in looks), plan
        assert not any("TEMP B-TREE" in line for line in plan)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_time_is_told_at_which_a_queue_lets_in_the_next(place, kind):
    """A worker need not ask again and again; a queue that is full has no such time."""
    store = place.open() if kind == "sqlite" else MemoryStore()
    put(store, *(due(run, queue="q") for run in "abcd"))
    now = time.time_ns() // 1000
    hourly = [Limit("q", starts=2, seconds=3600.0)]

    first = store.reserve(wish(store, now=now, limits=hourly, limit=1))
    second = store.reserve(wish(store, now=now + 5, limits=hourly))
    third = store.reserve(wish(store, now=now + 6, limits=hourly))
    full = store.reserve(wish(store, now=now + 6, limits=[Limit("q", concurrency=1, starts=9, seconds=3600.0)]))
    later = store.reserve(wish(store, now=now + HOUR_MICROS, limits=hourly))

    assert (first.runs, second.runs, third.runs, full.runs) == (["a"], ["b"], [], [])
    assert (second.next_wake, third.next_wake, full.next_wake) == (now + HOUR_MICROS, now + HOUR_MICROS, None)
    assert later.runs == ["a"], "the first start no longer counts, and its reservation is over"


def test_workers_file_that_cannot_be_looked_at_costs_one_look_and_not_the_handle(place, monkeypatch):
    """Out of descriptors for a moment: that is no doubt about what is on disk."""
    store = place.open()
    put(store, index_row("r", worker="0123456789abcdef"), due("s"))

    def failing(_):
        raise StoreUnavailable("too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(store._liveness, "alive", failing)
        with pytest.raises(StoreUnavailable, match="too many"):
            taken(store)

    assert taken(store) == ["r", "s"]


def test_reservation_leaves_the_row_what_it_was(place):
    """It is no part of what the row says, nor of its checksum."""
    store = place.open()
    put(store, due("r", labels={"team": "x"}))
    before = store.runs(RunQuery())

    assert taken(store) == ["r"]

    assert store.runs(RunQuery()) == before
    assert before[0].row == due("r", labels={"team": "x"})


def test_claimed_runs_are_found_among_those_that_are_claimed():
    """However many runs there are, few are driven at once: those are looked through, and no others."""
    question, values = sqlite._search(RunQuery(claimed=True), 1000, 50)

    plan = _plan(question, values)

    assert any("runs_by_worker" in line and line.startswith("SEARCH") for line in plan), plan
    assert not any(line.startswith("SCAN") for line in plan), plan


def test_what_people_did_is_found_without_reading_the_journals():
    """An audit of a store with a million entries costs what people did."""
    plan = _plan(sqlite._SAID, (10**9, 50))

    assert any("entries_said" in line for line in plan), plan
    assert not any("TEMP B-TREE" in line for line in plan), plan


def test_index_of_the_audit_has_the_numbers_of_the_kinds_that_it_is_about():
    """Its numbers are in the file for ever; 16 is kept for a kind that other versions write."""
    bits = int(schema.SAID.partition(" ")[0])
    listed = re.search(r"kind IN \((.*?)\)", postgres._SAID.decode())

    assert {kind for kind in range(64) if bits >> kind & 1} == SAID_KINDS | {16}
    assert set(map(int, listed[1].split(", "))) == SAID_KINDS | {16}
    assert listed[0] in files(schema_of_postgres.__package__).joinpath("migrations", "0001.sql").read_text()


def _plan(question, values):
    connection = apsw.Connection(":memory:")
    for statement in schema.SCHEMA.values():
        connection.execute(statement)
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {question}", values)]


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (RunQuery(need="*"), "runs_in_need"),
        (RunQuery(need="question", workflow="w"), "runs_by_need"),
        (RunQuery(status="waiting", workflow="w"), "runs_by_status"),
        (RunQuery(status="done"), "runs_by_status"),
        (RunQuery(status="done", workflow="w"), "runs_by_workflow"),
        (RunQuery(workflow="w"), "runs_by_workflow"),
        (RunQuery(queue="mail", status="done"), "runs_by_queue"),
        (RunQuery(labels={"team": "x"}, status="done"), "PRIMARY KEY (name=? AND value=?"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lists_for_people_are_found_by_index(query, index):
    """With a hundred thousand runs a page costs what is on it: nothing is sorted, and no table is read from end to end."""
    question, values = sqlite._search(query, 1000, 50)

    plan = _plan(question, values)

    assert any(index in line and line.startswith("SEARCH") for line in plan), plan
    assert not any(line.startswith("SCAN") or "TEMP B-TREE" in line for line in plan), plan
