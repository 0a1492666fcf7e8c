"""Workers, server and network fail again and again, and no run is lost or done twice: the short version of the proof."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.fleet import Chaos, Orders, Weather, fleet_on, work_through
from tests.postgres import Server, serving

pytestmark = pytest.mark.timeout(240)
SEED = 5
LEASE_SECONDS = 3.0


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that may be killed."""
    with serving(tmp_path_factory.mktemp("struck")) as made:
        yield made


def test_workers_and_their_server_are_killed_and_every_effect_is_done_once(own_server, tmp_path, monkeypatch):
    """Claims die with their workers, a zombie wakes up, commits are lost on the way: nothing of it may show."""
    store = own_server.database()
    monkeypatch.setenv("SUREFOOT_STORE", store)
    with fleet_on(tmp_path, store, pace=0.3, lease=LEASE_SECONDS, unwind=0.3) as fleet:
        chaos = Chaos(fleet, seed=SEED, lease=LEASE_SECONDS)
        blows = [
            (1.5, chaos.kill), (0.5, chaos.pause), (0.5, chaos.kill), (1.0, partial(chaos.restart, own_server)),
            (1.0, chaos.kill), (LEASE_SECONDS - 1, chaos.resume), (0.5, chaos.kill),
        ]  # fmt: skip
        orders = Orders(20, seed=SEED, naps=(0.5, 1.0))
        work_through(fleet, chaos, orders, blows, workers=[store] * 3, seconds=120)


def test_network_of_each_worker_fails_and_every_effect_is_done_once(own_server, tmp_path, monkeypatch):
    """Requests and answers get lost, and one worker is cut off until others have taken its runs up."""
    store = own_server.database()
    monkeypatch.setenv("SUREFOOT_STORE", store)
    with (
        Weather(own_server.port) as one,
        Weather(own_server.port) as two,
        fleet_on(tmp_path, store, pace=0.3, lease=LEASE_SECONDS, unwind=0.3) as fleet,
    ):
        chaos = Chaos(fleet, seed=SEED, lease=LEASE_SECONDS)
        name = store.rpartition("/")[2]
        troubles = [(0.15, partial(chaos.trouble, network)) for network in (one, two) * 6]
        blows = [(1.5, partial(chaos.trouble, one)), *troubles, (0.1, partial(chaos.cut_off, two, 1)), *troubles]
        orders = Orders(20, seed=SEED, naps=(0.5, 1.0))
        workers = [own_server.url_of(name, network.port) for network in (one, two)]
        work_through(fleet, chaos, orders, blows, workers=workers, seconds=120)


def test_workers_on_one_sqlite_file_are_killed_and_every_effect_is_done_once(tmp_path, monkeypatch):
    """The same promises where a lock, and no lease, says who lives."""
    store = "sqlite:///runs.db"
    monkeypatch.setenv("SUREFOOT_STORE", store)
    with fleet_on(tmp_path, store, pace=0.3, unwind=0.3) as fleet:
        chaos = Chaos(fleet, seed=SEED, lease=0.0)
        blows = [
            (1.5, chaos.kill), (0.5, chaos.pause), (0.5, chaos.kill), (1.0, chaos.kill), (0.5, chaos.resume),
            (1.0, chaos.kill),
        ]  # fmt: skip
        orders = Orders(20, seed=SEED, naps=(0.5, 1.0))
        work_through(fleet, chaos, orders, blows, workers=[store] * 3, seconds=120)
