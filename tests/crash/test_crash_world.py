"""The world misbehaves: it is slow, it raises after the deed, somebody else writes beside the run (L10, L11, L12)."""

from __future__ import annotations

import pytest

from tests.crash.plan import QUICK

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["world"], ids=lambda part: f"{part.plan}-{part.flow}")
def test_nothing_is_done_twice_or_taken_for_something_else(part, lived):
    """The store is whole in all of them: what is tried is what the engine makes of the world."""
    lived(part)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("flow=ready level=L12 at=5000:meddle seed=0", "nobody wrote"),
        ("flow=KeyError+ask+none+0+alone+rewind level=L11 at=3:kill seed=0", ""),
    ],
)
def test_a_world_that_does_not_strike_does_not_count(line, why, lab):
    """Else a lab in which nothing happens would look best. A kill elsewhere makes no difference to what has struck."""
    (outcome,) = lab.outcomes(lines=[line])

    assert (outcome.uncounted, outcome.violations) == (why, [])
