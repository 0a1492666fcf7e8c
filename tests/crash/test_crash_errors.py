"""System calls that fail, once and from there on: EIO, ENOSPC, short writes, failed syncs (L4)."""

from __future__ import annotations

import pytest

from tests.crash.lab import MAY_BE_SILENT
from tests.crash.plan import QUICK

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["errors"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_what_fails_is_said_by_name_and_does_no_harm(part, lived):
    """A named error, in the process that met it; and nothing is lost for the next one."""
    outcomes = [one for one in lived(part) if one.counted]

    assert any(one.said for one in outcomes)
    assert {place for one in outcomes for place in one.silent} <= MAY_BE_SILENT.keys()
