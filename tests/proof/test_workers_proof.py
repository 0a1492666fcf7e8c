"""Many workers under blows: processes killed and paused, the server crashed, the network broken; the long version."""

from __future__ import annotations

import signal
from functools import partial

import pytest

import surefoot as sf
from tests import fleet_app as app
from tests.fleet import CONCURRENCY, Chaos, Orders, Weather, fleet_on, hold, work_through
from tests.ledger import ask
from tests.postgres import serving
from tests.working import ended, kinds, wait_until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]
LEASE_SECONDS = 10.0
"""The default: nothing is hurried here."""
NAPS = (0.5, 6.0)
"""The second is longer than a worker waits: the run is let go of, and taken up again."""

PACE = 0.4
"""An order takes some seconds, nearly all of them in effects."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server")) as made:
        yield made


@pytest.fixture
def store(server, monkeypatch):
    url = server.database()
    monkeypatch.setenv("SUREFOOT_STORE", url)
    return url


@pytest.mark.parametrize("seed", [1, 2])
def test_workers_and_their_server_are_killed(server, store, tmp_path, seed, report):
    with fleet_on(tmp_path, store, pace=PACE) as fleet:
        chaos = Chaos(fleet, seed=seed, lease=LEASE_SECONDS)
        restart = partial(chaos.restart, server)
        others = (10.0, chaos.pause), (15.0, restart), (24.0, chaos.resume), (30.0, restart), (45.0, restart)
        orders = Orders(400, seed=seed, naps=NAPS)
        seen = work_through(
            fleet, chaos, orders, chaos.schedule(60.0, chaos.kill, 1.3, *others), workers=[store] * 4, seconds=600
        )
        assert (chaos.counts["restarts"], chaos.counts["pauses"]) == (3, 1)
    report(
        f"4 workers on PostgreSQL, 400 orders of 10 effects; SIGKILL every second or so, one SIGSTOP past its lease, server "
        f"stopped at once and restarted 3 times; seed {seed}",
        seen,
    )


def test_network_drops_delays_and_resets(server, store, tmp_path, report):
    networks = [Weather(server.port) for _ in range(4)]
    try:
        with fleet_on(tmp_path, store, pace=PACE) as fleet:
            chaos = Chaos(fleet, seed=3, lease=LEASE_SECONDS)

            def trouble() -> None:
                chaos.trouble(chaos.luck.choice(networks))

            cuts = [(20.0, partial(chaos.cut_off, networks[0], 0)), (40.0, partial(chaos.cut_off, networks[1], 1))]
            orders = Orders(400, seed=3, naps=NAPS)
            name = store.rpartition("/")[2]
            seen = work_through(
                fleet, chaos, orders, chaos.schedule(60.0, trouble, 0.2, *cuts),
                workers=[server.url_of(name, network.port) for network in networks], seconds=600,
            )  # fmt: skip
    finally:
        for network in networks:
            network.close()
    report("4 workers on PostgreSQL, 400 orders of 10 effects; each worker's network fails for a minute; seed 3", seen)


def test_workers_on_one_sqlite_file_are_killed(tmp_path, monkeypatch, report):
    store = "sqlite:///runs.db"
    monkeypatch.setenv("SUREFOOT_STORE", store)
    with fleet_on(tmp_path, store, pace=PACE) as fleet:
        chaos = Chaos(fleet, seed=4, lease=LEASE_SECONDS)
        orders = Orders(150, seed=4, naps=NAPS)
        seen = work_through(
            fleet, chaos, orders, chaos.schedule(30.0, chaos.kill, 1.3, (8.0, chaos.pause), (20.0, chaos.resume)),
            workers=[store] * 4, seconds=300,
        )  # fmt: skip
    report(
        "4 workers on one SQLite file, 150 orders of 10 effects; SIGKILL every second or so, one SIGSTOP; seed 4", seen
    )


ROUNDS = 4


def test_effects_of_a_paused_worker_are_not_run_by_the_other(store, tmp_path, report):
    """Each round: a worker is paused with five effects in flight that ask, and the other meets all of them."""
    with fleet_on(tmp_path, store) as fleet:
        for number in range(ROUNDS):
            _paused(fleet, [f"{number}.{n}" for n in range(CONCURRENCY)])
    report(
        f"{ROUNDS} × {CONCURRENCY} effects in flight that ask, their worker paused past its lease, and continued",
        f"{ROUNDS * CONCURRENCY} met by the other worker and not run; the one that woke up said what it had done, and wrote nothing else",
    )


def _paused(fleet, runs):
    for n, run in enumerate(runs):
        app.holding.start(run, n)
    zombie = fleet.start()
    wait_until(lambda: all(ask(fleet.ledger, do="look", room=run, what="held#1") for run in runs), 60)
    zombie.send_signal(signal.SIGSTOP)
    other = fleet.start()
    wait_until(lambda: all(sf.get_run(run).status == "stopped" for run in runs), 120)
    before = [kinds(run) for run in runs]
    ask(fleet.ledger, do="open", room=app.GATE, what="open")

    zombie.send_signal(signal.SIGCONT)
    zombie.terminate()
    assert zombie.wait(120) == 0, fleet.told()

    assert [kinds(run) for run in runs] == [[*one, "EffectLandedLate"] for one in before]
    for n, run in enumerate(runs):
        assert isinstance(sf.get_run(run).stop, sf.InDoubt)
        sf.get_run(run).settle("held#1", happened=n, by="ann")
    wait_until(ended(*runs), 60)
    hold({run: n for n, run in enumerate(runs)}, fleet.ledger, {})
    ask(fleet.ledger, do="clear", room=app.GATE)
    fleet.kill(other)


def test_thousand_queued_runs_are_drained_by_two_workers(store, tmp_path, report):
    runs = {f"r{n}": n for n in range(1000)}
    with fleet_on(tmp_path, store) as fleet:
        for run, n in runs.items():
            app.short.start(run, n)
        for _ in range(2):
            fleet.start()
        wait_until(lambda: sf.get_run("r0").runtime.store.tally().get(("done", "")) == len(runs), 300)
        fleet.end_all()
        seen = hold(runs, fleet.ledger, {})
        pids = {line["pid"] for run in runs for line in ask(fleet.ledger, do="look", room=run, what="*")}
        assert all(kinds(run).count("RunAdopted") == 1 for run in runs)
    assert seen["effects done again under the same key"] == 0
    assert len(pids) == 2
    report(
        "1,000 queued short runs drained by 2 workers", f"{seen['effects']} effects, each once, by both; 1 claim each"
    )
