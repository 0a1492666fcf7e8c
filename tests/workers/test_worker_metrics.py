"""A worker's numbers over the stores that workers share."""

from __future__ import annotations

import surefoot as sf
from surefoot.engine.worker.prometheus import Exposition
from tests.working import wait_until


@sf.workflow
def counted(n):
    return n


def test_runs_are_counted_by_the_store_and_a_lease_is_told_where_there_is_one(store):
    for n in range(3):
        counted.start(f"c-{n}", n)
    counted.using(delay="1h").start("later", 1)

    with sf.Worker() as worker, Exposition(worker, "127.0.0.1", 0) as exposed:
        wait_until(lambda: worker.ended.get("done") == 3)
        wait_until(lambda: 'surefoot_runs{status="done",reason=""} 3\n' in exposed.text())
        told = exposed.text()

    assert 'surefoot_runs{status="queued",reason=""} 1\n' in told
    assert 'surefoot_runs_ended_total{how="done"} 3\n' in told
    assert "surefoot_store_up 1\n" in told
    assert ("surefoot_lease_renewals_total" in told) == store.startswith("postgresql")
    assert ("surefoot_lease_losses_total 0\n" in told) == store.startswith("postgresql")
    assert ("surefoot_clock_difference_seconds" in told) == store.startswith("postgresql")
