"""The codec in numbers: values of every kind there and back, and bytes of every kind in. `make proof` does many times this."""

from __future__ import annotations

import sys

import pytest
from hypothesis import HealthCheck, given, settings

from tests.hostile import watched
from tests.rounds import hostile_inputs, round_trip
from tests.strategies import EVERYTHING

PIECES = 5
ROUNDS = 5_000
HOSTILE = 10_000


@pytest.mark.parametrize("piece", range(PIECES))
def test_thousands_of_values_come_back_exactly_as_they_went_in(piece):
    """Types, order, signs of zero, NaN and time zones: what replay sees is what the live run saw."""
    tried = []

    @settings(max_examples=ROUNDS // PIECES, suppress_health_check=[HealthCheck.too_slow])
    @given(EVERYTHING)
    def there_and_back(value):
        tried.append(1)
        round_trip(value)

    there_and_back()

    assert len(tried) >= ROUNDS // PIECES


def test_ten_thousand_hostile_inputs_make_nothing_happen():
    """Nothing is imported, opened, compiled or run, and only errors of ours come out."""
    found = hostile_inputs(HOSTILE, seed=1)

    assert found["findings"] == []
    assert found["read"] == HOSTILE
    assert found["ends"]["JournalCorrupt"] > HOSTILE / 2
    assert found["ends"]["value"] > HOSTILE / 20, "some of them have to be good, or they are stopped at the door"
    assert found["ends"]["SchemaMismatch"] > 0


def test_hook_sees_what_it_is_there_for(tmp_path):
    """A watch that sees nothing would let everything pass."""
    (tmp_path / "never_seen.py").write_text("")
    sys.path.insert(0, str(tmp_path))
    try:
        with watched() as seen:
            __import__("never_seen")
            compile("1", "x", "eval")
            exec("1")
            (tmp_path / "file").write_text("x")
            __import__("os").system("true")
    finally:
        sys.path.remove(str(tmp_path))

    assert {"import", "compile", "exec", "open", "os.system"} <= {event.split()[0] for event in seen}
