"""Workers, leases and queues on Redis: the tests of the other stores, run on this one; and a fleet that is struck."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.fleet import Chaos, Orders, Weather, fleet_on, work_through
from tests.redis import Server, serving
from tests.workers import test_worker, test_worker_processes

LEASE_SECONDS = 3
SEED = 1

pytestmark = pytest.mark.timeout(240)

for _module in (test_worker, test_worker_processes):
    globals().update(
        {name: one for name, one in vars(_module).items() if name.startswith("test_") or name in ("fleet", "gate")}
    )
del test_worker, test_worker_processes


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that may be killed."""
    with serving(tmp_path_factory.mktemp("struck")) as made:
        yield made


def test_workers_and_their_server_are_killed_and_every_effect_is_done_once(struck, tmp_path, monkeypatch):
    """Claims die with their workers, a zombie wakes up, commits are lost on the way: nothing of it may show."""
    url = struck.fresh(lease=LEASE_SECONDS)
    monkeypatch.setenv("SUREFOOT_STORE", url)
    with fleet_on(tmp_path, url, pace=0.3, lease=float(LEASE_SECONDS), unwind=0.3) as fleet:
        chaos = Chaos(fleet, seed=SEED, lease=LEASE_SECONDS)
        blows = [
            (1.5, chaos.kill), (0.5, chaos.pause), (0.5, chaos.kill), (1.0, partial(chaos.restart, struck)),
            (1.0, chaos.kill), (LEASE_SECONDS - 1, chaos.resume), (0.5, chaos.kill),
        ]  # fmt: skip
        orders = Orders(20, seed=SEED, naps=(0.5, 1.0))
        work_through(fleet, chaos, orders, blows, workers=[url] * 3, seconds=200)


def test_network_of_each_worker_fails_and_every_effect_is_done_once(struck, tmp_path, monkeypatch):
    """Requests and answers get lost, and one worker is cut off until others have taken its runs up."""
    url = struck.fresh(lease=LEASE_SECONDS)
    monkeypatch.setenv("SUREFOOT_STORE", url)
    with (
        Weather(struck.port) as one,
        Weather(struck.port) as two,
        fleet_on(tmp_path, url, pace=0.3, lease=float(LEASE_SECONDS), unwind=0.3) as fleet,
    ):
        chaos = Chaos(fleet, seed=SEED, lease=LEASE_SECONDS)
        troubles = [(0.15, partial(chaos.trouble, network)) for network in (one, two) * 6]
        blows = [
            (1.5, partial(chaos.trouble, one)),
            *troubles,
            (0.1, partial(chaos.cut_off, two, 1)),
            *troubles,
            (0.5, chaos.kill),
        ]
        orders = Orders(20, seed=SEED, naps=(0.5, 1.0))
        workers = [url.replace(f":{struck.port}/", f":{network.port}/") for network in (one, two)]
        work_through(fleet, chaos, orders, blows, workers=workers, seconds=200)
