"""A team that deploys twice a day, with fifty runs in flight; the long version."""

from __future__ import annotations

import pytest

from tests.deploys import a_week

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]


@pytest.mark.parametrize("seed", [1, 2])
def test_fifty_runs_survive_a_week_of_fourteen_deploys(own_folder, seed, report):
    week = a_week(own_folder, runs=50, seed=seed, kills=2)

    assert week.seen["deploys"] == 14
    assert week.seen["kills"] >= 20
    assert len(week.cured) >= 5, "every kind of stop was met, and cured"
    report(
        f"an agent with tools in a week of 14 deploys, old and new workers side by side, SIGKILL; seed {seed}",
        week.told,
    )
