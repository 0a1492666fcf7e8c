"""Several processes on one simulated store, from a seed (L1)."""

from __future__ import annotations

import pytest

from tests.crash.plan import QUICK

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["simulation"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_whatever_the_schedule_nothing_is_done_twice(part, lived):
    """Death, lost acknowledgements, take-overs and visitors, at any operation on the store."""
    lived(part)
