"""Killed at random moments: a short version of what `make proof` does at length."""

from __future__ import annotations

import pytest

from tests.killing import ASYNC, BLOCKING, kill_and_resume


@pytest.mark.parametrize("source", [BLOCKING, ASYNC], ids=["blocking", "async"])
def test_a_run_killed_at_random_moments_repeats_no_recorded_step(tmp_path, source):
    """Five kills here, twenty in `make proof`."""
    tally = kill_and_resume(tmp_path, source=source, kills=5, seed=20261115)

    assert tally.kills == 5
