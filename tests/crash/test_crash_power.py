"""Power cuts: what was not synced is dropped, torn, reordered (L5)."""

from __future__ import annotations

import pytest

from tests.crash.plan import QUICK

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["power"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_what_was_acknowledged_survives_a_power_cut(part, lived):
    """Disk images are built from a trace of writes and syncs; the world keeps what it was told."""
    lived(part)
