"""A real SIGKILL while people answer, timers run, branches go side by side, and runs are forked, sent back and pruned (L3)."""

from __future__ import annotations

import pytest

from tests.crash.plan import QUICK

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["kills_together"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_killed_at_any_boundary_it_ends_as_if_nothing_had_been(part, lived):
    """What is done to whole runs is done whole or not at all."""
    assert all(one.kills for one in lived(part) if one.counted)
