"""What user code sees, and the way it goes, are the same in every process that lives a run (L14)."""

from __future__ import annotations

import pytest

from tests.crash.async_flows import FLOWS, TIMINGS
from tests.crash.plan import QUICK
from tests.crash.seeing import differences, told
from tests.crash.seen_flows import drawn
from tests.crash.zoo import EXCEPTIONS, VALUES

pytestmark = pytest.mark.timeout(300)  # seconds on an idle machine, but every scenario is several processes


@pytest.mark.parametrize("part", QUICK["seen"], ids=lambda part: part.plan)
def test_what_was_seen_once_is_seen_again_or_refused_by_name(part, lived):
    """Killed anywhere, often twice; in async flows everything is quicker or slower the next time."""
    assert all(one.kills for one in lived(part) if one.counted)


@pytest.mark.parametrize("timing", TIMINGS)
def test_async_flows_are_lived_with_every_timing(timing, lab):
    """A resume that only stops would replay nothing: without a fault each flow comes to its end."""
    lines = [f"flow=aw:{name}.3@{timing} level=L14 at=5000:kill seed=0" for name in sorted(FLOWS)[:6]]

    assert {one.uncounted for one in lab.outcomes(lines=lines)} == {"the boundary was not reached"}


def test_the_oracle_tells_apart_what_code_can_tell_apart():
    """Else it would agree with everything."""
    pairs = [
        (1, True), (1, 1.0), (0.0, -0.0), ((1,), [1]), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ("a", b"a"),
        (ValueError("a"), TypeError("a")), (ValueError("a"), ValueError("a", 1)),
    ]  # fmt: skip
    shared = [1]

    assert all(told(one) != told(other) for one, other in pairs)
    assert told([shared, shared]) != told([[1], [1]])


def test_the_oracle_sees_what_led_to_a_failure():
    plain, noted, caused, hidden = (ValueError("a") for _ in range(4))
    noted.add_note("more")
    caused.__cause__ = KeyError("k")
    hidden.__cause__ = KeyError("k")
    hidden.__suppress_context__ = False

    assert len({told(error) for error in (plain, noted, caused, hidden)}) == 4


def test_the_zoo_can_be_told_the_same_twice():
    """What differs from one look to the next would be found by luck only."""
    for made in (*VALUES.values(), *EXCEPTIONS.values()):
        assert told(made()) == told(made())


def test_another_value_and_another_way_are_differences_unless_the_code_was_refused():
    def saw(by, what, value, index=0):
        return {"do": "saw", "run": "r", "line": "main", "index": index, "by": by, "what": what, "value": value}

    first = [saw("1.0", "pay", "1"), saw("1.0", "tell", "2", 1)]

    assert differences([*first, saw("2.0", "pay", "1")]) == []
    assert [another for another, _ in differences([*first, saw("2.0", "pay", "2")])] == [False]
    assert [another for another, _ in differences([*first, saw("2.0", "tell", "2")])] == [True]
    assert differences([*first, saw("2.0", "tell", "2"), {"do": "refused", "passes": ["2.0"]}]) == []


def test_flows_of_the_oracle_have_values_exceptions_and_programs_in_both_colours():
    names = [drawn(seed) for seed in range(60)]

    assert len(set(names)) > 50
    for mark in ("seen:async:", "seen:p:async:", "seen:p:", "map.", "child.", "end.", "asked.", "noted."):
        assert any(mark in name for name in names)
