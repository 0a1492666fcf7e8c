"""The world misbehaves: it is slow, it raises after the deed, somebody else writes beside the run (L10, L11, L12)."""

from __future__ import annotations

import pytest

from tests.crash.plan import QUICK

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["world"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_nothing_is_done_twice_or_taken_for_something_else(part, lived):
    """The store is whole in all of them: what is tried is what the engine makes of the world."""
    lived(part)
