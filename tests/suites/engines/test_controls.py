"""Two drives of one run, and a control: workers that cache workflows are noticed.

The other controls stand beside what they are controls of: no bell and no sweep, and a loop that does not count rings, in
`test_loop.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import flows
import pytest
from stage import Place, wait_until
from test_temporal import Crew, made, open_gate

import surefoot as sf
from tests.working import ended


@pytest.fixture
def crew(temporal: Place, tmp_path) -> Iterator[Crew]:
    made_here = Crew(temporal, tmp_path)
    yield made_here
    made_here.close()


@pytest.mark.timeout(300)
def test_two_drives_of_one_run_meet_in_the_store(temporal, cluster, crew, ledger):
    """The workflow is reset while its run is driven. The second drive waits for the lease of the first."""
    crew.start("--concurrency", "1")
    flows.cut.start("asks", "asks", 5)
    wait_until(lambda: made(ledger, "asks", "charge"))
    crew.start()
    cluster.run("workflow", "reset", "-n", temporal.namespace, "-w", "asks", "--event-id", "5", "--reason", "to see")
    wait_until(lambda: attempts(cluster, temporal) > 2)
    assert "running" == sf.get_run("asks").status
    open_gate(ledger, "never")
    wait_until(ended("asks"))
    assert "ch_5 6" == sf.get_run("asks").result()
    assert 1 == made(ledger, "asks")["charge 5"]
    sf.get_run("asks").verify()


def attempts(cluster, temporal: Place) -> int:
    pending = cluster.described(temporal.namespace, "asks").get("pendingActivities", [])
    return max((int(one.get("attempt", 1)) for one in pending), default=0)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("cached", [False, True], ids=["no cache", "cache"])
def test_nobody_waits_for_what_a_dead_worker_had_cached(temporal, cluster, crew, ledger, cached):
    """With a cache, Temporal offers the next task to the dead worker alone, until that has timed out."""
    first = crew.start(**({"CACHED": "1"} if cached else {}))
    flows.approved.start("waits", 5)
    wait_until(lambda: sf.get_run("waits").status == "waiting")
    wait_until(lambda: "MODIFIED" in cluster.events(temporal.namespace, "waits")[-1])
    first.kill()
    first.wait()
    crew.start()
    sf.get_run("waits").answer("approve#1", True)
    wait_until(ended("waits"))
    history = cluster.json(temporal.namespace, "workflow", "show", "-w", "waits")["events"]
    timed_out = [event.get("workflowTaskTimedOutEventAttributes", {}).get("timeoutType", "") for event in history]
    # One that was begun and not ended in time is a matter of the machine.
    assert cached == any(kind.endswith("SCHEDULE_TO_START") for kind in timed_out)
