"""Corruption of whole stores: bits, tails, blocks, pages, rows, older copies (L6)."""

from __future__ import annotations

import pytest

from tests.crash.plan import QUICK

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["decay"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_damage_is_said_or_harmless(part, lived):
    """Unreadable is never nothing there."""
    lived(part)
