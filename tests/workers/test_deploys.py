"""A team that deploys twice a day, with runs in flight: the short version of the proof."""

from __future__ import annotations

from tests.deploys import a_week


def test_week_of_fourteen_deploys_strands_nothing_and_does_nothing_twice(own_folder):
    week = a_week(own_folder, runs=5, seed=4, kills=1)

    assert week.seen["deploys"] == 14
    assert week.seen["kills"] >= 1
    assert sum(week.cured.values()) >= 1, "edits that need a word were met by runs"
