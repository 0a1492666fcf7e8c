"""What Temporal and its users do to runs: kill workers, cancel, terminate, reset, start and answer by Temporal's tools."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import flows
import pytest
from stage import Place, wait_until

import surefoot as sf
from surefoot.engine.process import engines
from tests.ledger import ask
from tests.working import ended

LEASE_SECONDS = 4.0


class Crew:
    """Worker processes at one place, gone at the end."""

    def __init__(self, where: Place, folder: Path) -> None:
        self.where = where
        self.log = folder / "workers.log"
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str, **env: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            one = subprocess.Popen(
                [sys.executable, "-m", "surefoot", "worker", "flows", *words],
                stdout=log, stderr=log, start_new_session=True,
                env={
                    **os.environ, **self.where.env, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "LEASE": str(LEASE_SECONDS), **env,
                },
            )  # fmt: skip
        self.all.append(one)
        return one

    def told(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def close(self) -> None:
        for one in self.all:
            if one.poll() is None:
                one.kill()
                one.wait()


@pytest.fixture
def crew(temporal, tmp_path) -> Iterator[Crew]:
    made = Crew(temporal, tmp_path)
    yield made
    made.close()


def made(ledger: int, run: str, what: str = "*") -> Counter[str]:
    return Counter(f"{line['what']} {line['value']}" for line in ask(ledger, do="look", room=run, what=what))


def open_gate(ledger: int, *names: str) -> None:
    for name in names:
        ask(ledger, do="open", room="gates", what=name)


# -- a worker dies ----------------------------------------------------------------------------------------


@pytest.mark.timeout(300)
def test_an_effect_that_was_cut_off_is_decided_by_its_policy(temporal, crew, ledger):
    """Killed inside of an effect: another worker takes over, and nothing is repeated that nobody said may be."""
    first = crew.start()
    for policy in flows.POLICIES:
        flows.cut.start(policy, policy, 5)
    for policy in flows.POLICIES:
        wait_until(lambda policy=policy: made(ledger, policy, "charge"))

    crew.start()
    first.kill()

    wait_until(lambda: sf.get_run("asks").status == "stopped")
    assert ["InDoubt"] == [type(stop).__name__ for stop in sf.get_run("asks").stops]
    sf.get_run("asks").settle("asks#1", happened="ch_5")
    wait_until(ended(*flows.POLICIES))

    assert {"asks": 1, "retries": 2, "fails": 1, "checks": 1} == {
        policy: made(ledger, policy)["charge 5"] for policy in flows.POLICIES
    }
    assert 1 == len({line["key"] for line in ask(ledger, do="look", room="retries", what="charge")})
    assert ["ch_5 6"] * 3 == [sf.get_run(policy).result() for policy in ("asks", "retries", "checks")]
    assert "failed" == sf.get_run("fails").status


@pytest.mark.timeout(300)
def test_a_worker_that_is_told_to_stop_hands_its_runs_on(temporal, crew, ledger):
    """The call in flight finishes, and none is repeated."""
    first = crew.start()
    flows.gated.start("gated", 3)
    wait_until(lambda: made(ledger, "gated"))
    crew.start()
    first.terminate()
    open_gate(ledger, "step 0")
    assert 0 == first.wait(60), crew.told()
    open_gate(ledger, "step 1", "step 2")

    wait_until(ended("gated"))
    assert {"look 0": 1, "look 1": 1, "look 2": 1} == made(ledger, "gated")


@pytest.mark.timeout(300)
def test_a_frozen_worker_executes_nothing_twice_when_it_wakes(temporal, crew, ledger):
    """It is stopped inside of an effect past its lease and heartbeat, and goes on when another one has the run."""
    first = crew.start()
    flows.cut.start("asks", "asks", 5)
    wait_until(lambda: made(ledger, "asks", "charge"))
    first.send_signal(signal.SIGSTOP)
    crew.start()
    wait_until(lambda: sf.get_run("asks").status == "stopped")
    first.send_signal(signal.SIGCONT)
    open_gate(ledger, "never")
    if sf.get_run("asks").status == "stopped":  # Else the one that woke has already told what came of it.
        sf.get_run("asks").settle("asks#1", happened="ch_5")
    wait_until(ended("asks"))

    assert 1 == made(ledger, "asks")["charge 5"]
    assert "ch_5 6" == sf.get_run("asks").result()
    sf.get_run("asks").verify()


# -- Temporal's own verbs ---------------------------------------------------------------------------------


@pytest.mark.timeout(300)
def test_a_run_that_is_cancelled_in_temporal_takes_back_what_it_did(temporal, cluster, ledger):
    """The request is recorded, and the run ends as if it had been cancelled by surefoot."""
    with sf.Worker():
        flows.gated_saga.start("saga", 5)
        wait_until(lambda: made(ledger, "saga")["look 5"])
        cluster.run("workflow", "cancel", "-n", temporal.namespace, "-w", "saga")
        wait_until(lambda: sf.get_run("saga").state().cancel is not None)
        open_gate(ledger, "step 5")
        wait_until(ended("saga"))
        wait_until(lambda: cluster.status(temporal.namespace, "saga") == "CANCELED")

    assert "cancelled" == sf.get_run("saga").status
    assert {"charge 5": 1, "look 5": 1, "undo 5": 1} == made(ledger, "saga")


@pytest.mark.timeout(300)
def test_a_run_that_waits_can_be_cancelled_in_temporal(temporal, cluster, ledger):
    with sf.Worker():
        flows.approved.start("waits", 5)
        wait_until(lambda: sf.get_run("waits").status == "waiting")
        cluster.run("workflow", "cancel", "-n", temporal.namespace, "-w", "waits")
        wait_until(ended("waits"))
        wait_until(lambda: cluster.status(temporal.namespace, "waits") == "CANCELED")
    assert "cancelled" == sf.get_run("waits").status


@pytest.mark.timeout(300)
def test_a_run_that_is_cancelled_without_its_code_is_undone_by_a_worker(temporal, cluster, ledger, tmp_path):
    """The command has no code, and with an engine nobody has to name it: a worker undoes what was done."""
    with sf.Worker():
        flows.gated_saga.start("saga", 5)
        wait_until(lambda: made(ledger, "saga")["look 5"])
        done = subprocess.run(
            [sys.executable, "-m", "surefoot", "runs", "cancel", "saga", "--by", "ada"],
            env={**os.environ, **temporal.env, "SUREFOOT_APP": ""}, check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        open_gate(ledger, "step 5")
        wait_until(ended("saga"))
    assert 1 == made(ledger, "saga")["undo 5"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("temporal", [{"sweep": "1s"}], indirect=True)
def test_a_run_that_was_terminated_stays_so_until_somebody_resumes_it(temporal, cluster, ledger, monkeypatch):
    """Terminate means: leave it alone. Neither the bell nor the sweep begins it again."""
    told = threading.Event()
    with sf.Worker() as worker:
        hand_back = worker._driver.hand_back
        monkeypatch.setattr(worker._driver, "hand_back", lambda runs: told.set() or hand_back(runs))
        flows.gated.start("gated", 3)
        flows.approved.start("waits", 5)
        wait_until(lambda: made(ledger, "gated") and sf.get_run("waits").status == "waiting")
        for run in ("gated", "waits"):
            cluster.run("workflow", "terminate", "-n", temporal.namespace, "-w", run)
        # The drive is told with a heartbeat. From then on the call in flight may finish, and no other begins.
        wait_until(told.is_set)
        open_gate(ledger, "step 0")
        wait_until(lambda: "gated" not in worker.busy)
        sf.get_run("waits").answer("approve#1", True, by="ada")
        open_gate(ledger, "step 1", "step 2")
        flows.plain.start("later", 5)  # The sweep has been around when this one was found by it.
        swept(cluster, temporal, ledger)

        assert {"gated": "TERMINATED", "waits": "TERMINATED"} == {
            run: cluster.status(temporal.namespace, run) for run in ("gated", "waits")
        }
        assert 0 == made(ledger, "gated")["look 2"] + made(ledger, "waits")["charge 5"]

        assert 3 == sf.get_run("gated").resume()
        engines.opened().reopen(sf.runs(workflow="approved")[0].row, sf.get_run("waits").runtime.store.url)
        assert "ch_5" == sf.get_run("waits").result("100s")


def swept(cluster, temporal: Place, ledger: int) -> None:
    """Wait until the sweep has found a run for which nobody rang."""
    with engines.opened().quiet("unheard"):
        flows.plain.start("unheard", 5)
    wait_until(ended("unheard"))


@pytest.mark.timeout(300)
def test_a_reset_drives_again_and_executes_nothing_again(temporal, cluster, ledger):
    with sf.Worker():
        flows.approved.start("reset", 5)
        wait_until(lambda: sf.get_run("reset").status == "waiting")
        sf.get_run("reset").answer("approve#1", True, by="ada")
        assert "ch_5" == sf.get_run("reset").result("100s")
        before = len(sf.get_run("reset").entries())
        wait_until(lambda: cluster.status(temporal.namespace, "reset") == "COMPLETED")
        cluster.run(
            "workflow", "reset", "-n", temporal.namespace, "-w", "reset", "--event-id", "5", "--reason", "to see"
        )  # fmt: skip
        wait_until(lambda: cluster.status(temporal.namespace, "reset") == "COMPLETED")
    assert {"charge 5": 1} == made(ledger, "reset")
    assert before == len(sf.get_run("reset").entries())


@pytest.mark.timeout(300)
def test_a_run_can_be_started_and_answered_by_temporals_own_tools(temporal, cluster, ledger):
    """A caller in any language: start, update, result. Who answered is on record."""
    namespace = ("-n", temporal.namespace)
    with sf.Worker():
        cluster.run(
            "workflow", "start", *namespace, "--type", "approved", "--workflow-id", "theirs", "--task-queue", "surefoot",
            "--input", '{"args": [5]}',
        )  # fmt: skip
        wait_until(lambda: cluster.status(temporal.namespace, "theirs") == "RUNNING" and waits("theirs"))
        said = '{"do": "answer", "question": "approve#1", "value": true}'
        cluster.run("workflow", "update", "execute", *namespace, "-w", "theirs", "--name", "answer", "--input", said,
                    "--identity", "grace")  # fmt: skip
        found = cluster.json(temporal.namespace, "workflow", "result", "-w", "theirs")
    assert "ch_5" == found["result"]
    (given,) = [entry for entry in sf.get_run("theirs").entries() if entry.kind == "AnswerGiven"]
    assert ("grace", "temporal") == (given.data["by"], given.data["via"])


def waits(run: str) -> bool:
    try:
        return sf.get_run(run).status == "waiting"
    except sf.NotFound:
        return False


@pytest.mark.timeout(300)
def test_a_start_in_temporal_that_cannot_be_is_refused(temporal, cluster, ledger):
    """Other arguments for an id that is there, and arguments that the workflow does not take."""
    with sf.Worker():
        assert "ch_5" == flows.plain.start("taken", 5).result("100s")
        assert "COMPLETED" == cluster.ended(temporal.namespace, "taken")
        for run, given in {"taken": '{"args": [6]}', "odd": '{"args": [1, 2, 3]}', "odder": "[1]"}.items():
            cluster.run("workflow", "start", "-n", temporal.namespace, "--type", "plain", "--workflow-id", run,
                        "--task-queue", "surefoot", "--input", given)  # fmt: skip
            assert "FAILED" == cluster.ended(temporal.namespace, run)
    assert {"look 5": 1, "charge 5": 1} == made(ledger, "taken")
    assert ["taken"] == [run.id for run in sf.runs()]


@pytest.mark.timeout(300)
def test_a_wrong_answer_is_refused_and_the_run_still_waits(temporal, cluster, ledger):
    with sf.Worker():
        flows.approved.start("waits", 5)
        wait_until(lambda: waits("waits"))
        with pytest.raises(AssertionError, match="no question"):
            cluster.run("workflow", "update", "execute", "-n", temporal.namespace, "-w", "waits", "--name", "answer",
                        "--input", '{"do": "answer", "question": "approve#9", "value": true}')  # fmt: skip
        assert waits("waits")
        sf.get_run("waits").answer("approve#1", False)
        assert "left alone" == sf.get_run("waits").result("100s")


# -- what is in Temporal ----------------------------------------------------------------------------------


@pytest.mark.timeout(300)
def test_no_argument_and_no_value_is_in_temporal(temporal, cluster, ledger):
    """Searched for in the files of the server itself."""
    with sf.Worker():
        flows.secretive.start("discreet", "xylophone")
        wait_until(lambda: waits("discreet"))
        sf.get_run("discreet").answer("approve#1", True, note="glockenspiel")
        assert "xylophone XYLOPHONE" == sf.get_run("discreet").result("100s")
        flows.breaks.start("broken", "xylophone")
        wait_until(lambda: cluster.status(temporal.namespace, "broken") == "FAILED")
        wait_until(lambda: cluster.status(temporal.namespace, "discreet") == "COMPLETED")
    stored = b"".join(path.read_bytes() for path in cluster.folder.glob("temporal.db*"))
    assert b"discreet" in stored
    assert [] == [word for word in (b"xylophone", b"XYLOPHONE", b"glockenspiel") if word in stored]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("temporal", [{"mirror": "values"}], indirect=True)
def test_values_are_in_temporal_if_they_are_asked_for(temporal, cluster, ledger):
    with sf.Worker():
        flows.plain.start("open", 5)
        assert "ch_5" == cluster.json(temporal.namespace, "workflow", "result", "-w", "open")["result"]


@pytest.mark.timeout(300)
def test_the_stop_is_seen_in_temporal(temporal, cluster, ledger):
    """By search attribute for lists, and in the memo for people."""
    with sf.Worker():
        flows.approved.start("waits", 5)
        wait_until(lambda: waits("waits"))
        wait_until(lambda: "memo" in cluster.described(temporal.namespace, "waits")["workflowExecutionInfo"])
        wait_until(
            lambda: ["waits"] == [
                found["execution"]["workflowId"]
                for found in cluster.json(
                    temporal.namespace, "workflow", "list", "--query", "SurefootReason = 'WaitingForAnswer'"
                )
            ]
        )  # fmt: skip
        sf.get_run("waits").answer("approve#1", False)
        assert "left alone" == sf.get_run("waits").result("100s")


@pytest.mark.timeout(300)
def test_a_run_costs_temporal_thirteen_events_however_many_steps_it_has(temporal, cluster, ledger):
    with sf.Worker():
        flows.counts.start("many", 300)
        sf.get_run("many").result("100s")
        flows.approved.start("waits", 5)
        wait_until(lambda: waits("waits"))
        wait_until(lambda: "MODIFIED" in cluster.events(temporal.namespace, "waits")[-1])
        sf.get_run("waits").answer("approve#1", True)
        sf.get_run("waits").result("100s")
        wait_until(lambda: cluster.status(temporal.namespace, "waits") == "COMPLETED")
        wait_until(lambda: cluster.status(temporal.namespace, "many") == "COMPLETED")
    plain, waited = (events(cluster, temporal, run) for run in ("many", "waits"))
    assert plain <= 13
    assert waited - plain <= 13


def events(cluster, temporal: Place, run: str) -> int:
    """A task that times out on a busy machine is done again: three events that are no matter of ours."""
    found = cluster.events(temporal.namespace, run)
    return len(found) - 3 * found.count("WORKFLOW_TASK_TIMED_OUT")


@pytest.mark.timeout(300)
def test_a_namespace_without_the_search_attributes_serves_as_well(cluster, database, ledger, tmp_path):
    """To set one that is missing would fail every run: a worker looks first."""
    from stage import at

    where = Place("Temporal", database.database(), cluster.url(cluster.namespace(attributes=False), heartbeat="1s"))
    with at(where), sf.Worker():
        assert "ch_5" == flows.plain.start("plain", 5).result("100s")


# -- queues -----------------------------------------------------------------------------------------------


@pytest.mark.timeout(300)
def test_the_limit_of_a_queue_holds_over_all_workers(temporal, ledger):
    """One at a time, though two workers have room for more."""
    with sf.Worker(concurrency=5), sf.Worker(concurrency=5):
        runs = [f"held-{n}" for n in range(4)]
        for run in runs:
            flows.held.using(queue="limited").start(run, 1)
        for _ in range(4):
            wait_until(lambda: any(stands(run, ledger) for run in runs))
            (one,) = [run for run in runs if stands(run, ledger)]
            open_gate(ledger, one)
            wait_until(ended(one))
            runs.remove(one)


def stands(run: str, ledger: int) -> bool:
    return bool(made(ledger, run))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("temporal", [{"sweep": "1s"}], indirect=True)
def test_a_queue_that_no_code_declares_is_served_as_with_embedded_workers(temporal, ledger):
    """A worker that serves all queues finds it in the store."""
    with sf.Worker():
        assert "ch_5" == flows.plain.using(queue="never declared").start("plain", 5).result("100s")


# -- the bell and the sweep -------------------------------------------------------------------------------


@pytest.mark.timeout(300)
@pytest.mark.parametrize("temporal", [{"sweep": "1s"}], indirect=True)
def test_a_ring_that_was_lost_is_found_by_the_sweep(temporal, ledger):
    with sf.Worker():
        with engines.opened().quiet("unheard"):
            flows.plain.start("unheard", 5)
        assert "ch_5" == sf.get_run("unheard").result("100s")


@pytest.mark.timeout(300)
def test_a_start_without_temporal_is_recorded(database, ledger, tmp_path, caplog):
    """The cluster is away: the caller is told, and the run is not lost."""
    from stage import at

    from tests.postgres import free_port

    where = Place("Temporal", database.database(), f"temporal://127.0.0.1:{free_port()}/default")
    with at(where):
        begun = time.monotonic()
        flows.plain.start("plain", 5)
        flows.plain.start("next", 5)  # Nobody waits once more for each of many.
        assert time.monotonic() - begun < 60
        assert ["queued", "queued"] == [sf.get_run(run).status for run in ("plain", "next")]
    assert "did not hear" in caplog.text
