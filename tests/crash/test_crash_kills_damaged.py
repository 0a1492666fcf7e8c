"""A real SIGKILL while damage is being dealt with: falling back, building anew, adopting an older state (L3)."""

from __future__ import annotations

import pytest

from tests.crash.plan import QUICK

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["kills_damaged"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_killed_while_it_steps_back_it_does_so_later(part, lived):
    """Whoever mends is killed as well; then the next one mends."""
    assert all(one.kills for one in lived(part) if one.counted)
