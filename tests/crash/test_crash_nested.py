"""A second SIGKILL while recovering from the first, and more (L9)."""

from __future__ import annotations

import pytest

from tests.crash.plan import QUICK
from tests.crash.scenario import parse

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["nested"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_killed_again_while_recovering_it_still_ends_right(part, lived):
    """Recovery is what it protects: it may be cut off anywhere, too."""
    assert all(one.kills == len(parse(one.line).plans()) for one in lived(part) if one.counted)
