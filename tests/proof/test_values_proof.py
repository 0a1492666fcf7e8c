"""The codec with full counts."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.rounds import hostile_inputs, round_trip
from tests.strategies import EVERYTHING

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]

PIECES = 10
ROUNDS = 100_000
HOSTILE = 100_000


def test_values_come_back_exactly_as_they_went_in(report):
    """In pieces: hypothesis keeps what it has seen, and would slow down."""
    tried = []

    @settings(max_examples=ROUNDS // PIECES, suppress_health_check=[HealthCheck.too_slow], database=None)
    @given(EVERYTHING)
    def there_and_back(value):
        tried.append(1)
        round_trip(value)

    for _ in range(PIECES):
        there_and_back()

    assert len(tried) >= ROUNDS
    report(
        "values of every kind there and back, whole and by parts, compared type by type",
        f"{len(tried)} round trips, 0 differences",
    )


def test_hostile_bytes_make_nothing_happen(report):
    found = hostile_inputs(HOSTILE, seed=2)

    assert found["findings"] == []
    ends = ", ".join(f"{number} {name}" for name, number in sorted(found["ends"].items()))
    report(
        "forged and broken bytes read by the decoders, an audit hook on import, exec, compile, open, subprocess, socket",
        f"{found['read']} inputs ({ends}), 0 findings",
    )
