"""A real SIGKILL at the boundaries of calls of every kind and policy (L3)."""

from __future__ import annotations

import pytest

from tests.crash.plan import QUICK

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["kills_alone"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_killed_at_any_boundary_it_ends_as_if_nothing_had_been(part, lived):
    """No boundary is named by hand: each write, sync and act was counted, and a part of them is drawn."""
    assert all(one.kills for one in lived(part) if one.counted)
