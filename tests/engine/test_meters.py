"""What a worker counts about itself: right, cheap to ask for, and no burden when the store is away."""

from __future__ import annotations

import re
import socket
import threading
import urllib.error
import urllib.request

import pytest

import surefoot as sf
from surefoot.engine.process.meters import meters
from surefoot.engine.worker import prometheus
from surefoot.engine.worker.prometheus import Exposition, Family
from surefoot.engine.worker.worker import Worker

LINE = re.compile(
    r"# HELP surefoot_\w+ [^\n]+|# TYPE surefoot_\w+ (gauge|counter|histogram)"
    r'|surefoot_\w+(\{\w+="([^"\\\n]|\\["\\n])*"(,\w+="([^"\\\n]|\\["\\n])*")*\})? -?[0-9.e+-]+'
)


class Store:
    """Nothing but what a scrape asks for."""

    id = "of this test"

    def __init__(self, tally):
        self.tally = tally

    def vitals(self):
        return {"lease_losses": 2, "lease_renewals": 7, "clock_difference_seconds": -0.5}


@pytest.fixture
def worker():
    return Worker(store="memory:", concurrency=4)


@pytest.fixture
def exposed(worker):
    with Exposition(worker, "127.0.0.1", 0) as found:
        yield found


def numbers(text):
    """Sample -> value."""
    lines = text.splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def value(found, sample):
    return found.get(f"surefoot_{sample}", 0.0)


# --- what is counted -------------------------------------------------------------------------------------


TRIES: list[int] = []


@sf.step(retries=2, backoff=sf.Backoff(first="1ms", factor=1, max="1ms", jitter=False))
def trying() -> int:
    TRIES.append(1)
    if len(TRIES) % 3:
        raise OSError("not yet")
    return 1


@sf.effect
def charge() -> None:
    raise ConnectionError("lost")


@sf.workflow
def working() -> int:
    return trying()


@sf.workflow
def doubtful() -> None:
    charge()


def test_appends_and_retries_are_counted(exposed):
    before = numbers(exposed.text())
    working.using(store="memory:").run("w")
    after = numbers(exposed.text())

    def more(sample):
        return value(after, sample) - value(before, sample)

    assert more("retries_total") == 2
    assert more("append_seconds_count") == more("append_entries_count") > 0
    assert more("append_entries_sum") == len(sf.get_run("w", store="memory:").entries())
    assert more("append_seconds_sum") > 0
    assert value(after, "unwritten_entries") == 0


def test_what_people_are_told_of_is_counted_by_kind(exposed):
    """An alert rule needs no alert sink to be set up."""
    before = numbers(exposed.text())
    with pytest.raises(sf.InDoubt):
        doubtful.using(store="memory:").run("d")
    after = numbers(exposed.text())

    sample = 'alerts_total{kind="InDoubt"}'
    assert value(after, sample) - value(before, sample) == 1
    assert value(after, 'runs{status="stopped",reason="InDoubt"}') >= 1


def test_an_append_that_failed_is_counted(exposed, worker, monkeypatch):
    failed = meters.failed_appends

    def refuse(_):
        raise sf.StoreUnavailable("away")

    monkeypatch.setattr(worker.runtime.store, "append", refuse)
    with pytest.raises(sf.StoreUnavailable):
        working.using(store="memory:").run("never")

    assert meters.failed_appends == failed + 1


def test_entries_that_wait_for_the_disk_are_counted(exposed, worker, monkeypatch):
    """The lag: somebody waits for each of them."""
    committer, gate, at_it = worker.runtime.committer, threading.Event(), threading.Event()
    append = worker.runtime.store.append

    def slowly(batch):
        at_it.set()
        assert gate.wait(30)
        return append(batch)

    monkeypatch.setattr(worker.runtime.store, "append", slowly)
    thread = threading.Thread(target=working.using(store="memory:").run, args=("lag",))
    thread.start()
    assert at_it.wait(30)
    lag = committer.unwritten()
    gate.set()
    thread.join(30)

    assert lag == 2  # RunCreated and RunAdopted
    assert committer.unwritten() == 0


# --- how it is told --------------------------------------------------------------------------------------


def test_buckets_are_cumulative_and_end_with_everything():
    by_bits = [0] * 64
    by_bits[1], by_bits[3], by_bits[40] = 2, 3, 1

    found = prometheus._buckets(by_bits, {1: 1, 2: 3, 3: 7}, 99.5)

    assert [(more, labels.get("le"), count) for more, labels, count in found] == [
        ("_bucket", "1", 2),
        ("_bucket", "3", 2),
        ("_bucket", "7", 5),
        ("_bucket", "+Inf", 6),
        ("_sum", None, 99.5),
        ("_count", None, 6),
    ]


def test_a_label_from_stored_data_cannot_pose_as_another_line():
    text = prometheus.text([Family("runs", "gauge", "Runs.", [("", {"reason": 'a"} 1\nsurefoot_up 1\\'}, 1)])])

    assert text.splitlines()[2:] == [r'surefoot_runs{reason="a\"} 1\nsurefoot_up 1\\"} 1']
    assert all(LINE.fullmatch(line) for line in text.splitlines())


def test_the_lease_and_the_clocks_are_told_where_the_store_has_them(exposed, worker, monkeypatch):
    monkeypatch.setattr(worker.runtime, "store", Store(lambda: {("done", ""): 3}))

    found = numbers(exposed.text())

    assert value(found, 'runs{status="done",reason=""}') == 3
    assert value(found, "lease_losses_total") == 2
    assert value(found, "lease_renewals_total") == 7
    assert value(found, "clock_difference_seconds") == -0.5
    assert value(found, "worker_concurrency") == 4


# --- when the store is away ------------------------------------------------------------------------------


def test_a_store_that_fails_is_shown_as_down_and_the_scrape_is_not(exposed, worker, monkeypatch):
    def fail():
        raise sf.StoreUnavailable("away")

    monkeypatch.setattr(worker.runtime, "store", Store(fail))

    found = numbers(exposed.text())

    assert found["surefoot_store_up"] == 0
    assert not any(sample.startswith("surefoot_runs{") for sample in found)
    assert found["surefoot_worker_concurrency"] == 4


def test_a_store_that_hangs_holds_up_no_scrape_and_is_asked_once(exposed, worker, monkeypatch):
    """Scrapes come every few seconds; each that waits for the store for ever would be one more thread."""
    asked, gate = [], threading.Event()

    def hang():
        asked.append(1)
        assert gate.wait(30)
        return {}

    monkeypatch.setattr(prometheus, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(worker.runtime, "store", Store(hang))

    assert [numbers(exposed.text())["surefoot_store_up"] for _ in range(3)] == [0, 0, 0]
    assert asked == [1]

    monkeypatch.setattr(prometheus, "PATIENCE_SECONDS", 30)
    gate.set()
    assert numbers(exposed.text())["surefoot_store_up"] == 1


# --- the server ------------------------------------------------------------------------------------------


def test_it_answers_over_http_and_knows_one_page_only(exposed):
    url = f"http://127.0.0.1:{exposed.port}"
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        assert numbers(answer.read().decode())["surefoot_store_up"] == 1
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{url}/other", timeout=10)
    assert refused.value.code == 404
    refused.value.close()


def test_a_client_that_says_nothing_keeps_nobody_else_from_scraping(exposed):
    with (
        socket.create_connection(("127.0.0.1", exposed.port)),
        urllib.request.urlopen(f"http://127.0.0.1:{exposed.port}/", timeout=10) as answer,
    ):
        assert answer.status == 200


def test_a_place_that_cannot_be_had_is_refused_with_a_reason(exposed, worker):
    with pytest.raises(sf.UsageError, match=rf"127\.0\.0\.1:{exposed.port}: Address already in use"):
        Exposition(worker, "127.0.0.1", exposed.port)
    with pytest.raises(sf.UsageError, match="cannot be served"):
        Exposition(worker, "no such host", 0)
