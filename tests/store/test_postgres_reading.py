"""Threads that read at one moment share a question, and nothing else: neither each other's answers nor their damage."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from surefoot.core.urls import parse
from surefoot.errors import JournalCorrupt, StoreUnavailable
from surefoot.store.contract import Stored
from surefoot.store.postgres.reading import MOST, Reading
from surefoot.store.postgres.store import PostgresStore
from surefoot.testing.conformance import Writer
from tests.postgres import serving


class Look:
    """A store that is asked for one journal first, and not let go before everybody else waits."""

    def __init__(self, *, others: int, damaged: str = "", away: bool = False) -> None:
        self.asked: list[list[str]] = []
        self.damaged, self.away, self.others = damaged, away, others
        self.reading = Reading(self)

    def __call__(self, runs):
        self.asked.append(list(runs))
        if len(self.asked) == 1:
            wait_for(lambda: len(self.reading._waiting) == self.others)
        elif self.away:
            raise StoreUnavailable("away")
        if self.damaged in runs:
            raise JournalCorrupt(f"{self.damaged} is damaged")
        return [Stored([run], None) for run in runs]

    def read(self, run):
        try:
            return self.reading.read(run).records[0]
        except (JournalCorrupt, StoreUnavailable) as error:
            return type(error)

    def read_all(self, runs):
        with ThreadPoolExecutor(len(runs)) as pool:
            first = pool.submit(self.read, runs[0])
            wait_for(lambda: self.asked)
            return [first.result() for first in [first, *(pool.submit(self.read, run) for run in runs[1:])]]


def wait_for(is_so):
    pause = threading.Event()
    while not is_so():
        pause.wait(0.001)


def test_those_who_wait_are_asked_for_together():
    """Two hundred runs taken up at once would be two hundred round trips, one after the other."""
    runs = [f"run-{n}" for n in range(MOST + 6)]
    look = Look(others=len(runs) - 1)

    assert runs == look.read_all(runs)
    assert [1, MOST, 5] == [len(asked) for asked in look.asked]


def test_damage_is_told_to_nobody_but_its_own_reader():
    """Another run would be stopped for it, or step back from entries that are whole."""
    look = Look(others=4, damaged="c")

    assert ["a", "b", JournalCorrupt, "d", "e"] == look.read_all(["a", "b", "c", "d", "e"])


def test_a_store_that_is_away_is_waited_for_once():
    """Each wait for a server takes half a minute; not so for each of two hundred, one after the other."""
    look = Look(others=3, away=True)

    assert ["a", *[StoreUnavailable] * 3] == look.read_all(["a", "b", "c", "d"])
    assert 2 == len(look.asked)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server")) as server:
        store = PostgresStore.open(parse(server.url, ["postgresql"]), create=True)
        yield store
        store.close()


def test_journals_read_together_are_those_read_alone(store):
    """Whatever is asked along with it: runs with and without entries, the same run twice, names that need care."""
    runs = ["one", "two", "it's", "größe", "one", "unknown"]
    for run in ("one", "two", "it's", "größe"):
        writer = Writer(store, run)
        for n in range(3 + len(run)):
            assert [None] == store.append([writer.append(b"%d" % n)])

    alone = [store._read_together([run])[0] for run in runs]

    assert alone == store._read_together(runs)
    assert [6, 6, 7, 8, 6, 0] == [len(stored.records) for stored in alone]
    assert store.read("two") == alone[1]
