"""Decisions that are arithmetic on values: addresses, keys, timers, retries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.address import Scope, escape
from surefoot.core.key import idempotency_key
from surefoot.core.retry import Backoff, RetryPolicy, after_doubt, next_try
from surefoot.core.timer import Moment, after, remaining, seconds, until
from surefoot.errors import Fatal, NotDone, RetryAfter, UsageError


@given(st.text(), st.text())
def test_different_labels_have_different_addresses(one, two):
    """Escaping must be reversible, or two files could share a name."""
    if one != two:
        assert escape(one) != escape(two)
    assert not set(escape(one)) & set("[]#\n\x00\ud800")


def test_addresses_count_per_name_and_scope():
    scope = Scope()

    assert [scope.take("a"), scope.take("b"), scope.take("a")] == ["a#1", "b#1", "a#2"]
    assert scope.labelled("x").take("a") == "[x]/a#1"
    assert scope.labelled("x").take("a") == "[x]/a#2"
    scope.take("gather")
    assert scope.branch("gather", 0).take("a") == "gather#1.0/a#1"
    assert scope.labelled("new", "old").also == (("[old]/", True),)
    assert scope.labelled("new", "").also == (("", False),), "calls around it are counted together with others"


def test_a_key_depends_on_every_part_and_not_on_how_they_are_glued():
    keys = [
        idempotency_key(*parts)
        for parts in [
            ("", "ab", 1, "c"),
            ("", "a", 1, "bc"),
            ("a", "b", 1, "c"),
            ("", "ab", 2, "c"),
            ("", "ab", 1, "d"),
        ]
    ]

    assert len(set(keys)) == 5
    assert keys[0] == "005be8a0187b805a3c0b49668846be4241f72d90", "golden: a released key never changes"


def test_within_one_boot_the_wall_clock_is_not_believed():
    """Ten days wrong in either direction: the timer is neither early nor late."""
    due = after(Moment(1_000_000, "boot", 5_000_000), 60)
    ten_days = 864_000_000_000

    for wrong in (-ten_days, 0, ten_days):
        assert remaining(due, Moment(1_000_000 + wrong, "boot", 35_000_000)) == 30


def test_after_a_restart_the_wall_clock_has_to_do():
    due = after(Moment(1_000_000, "boot", 5_000_000), 60)

    assert remaining(due, Moment(41_000_000, "another boot", 0)) == 20
    assert remaining(until(Moment(0, "b", 0), 7_000_000), Moment(0, "c", 9)) == 7


@pytest.mark.parametrize(
    ("given_", "expected"),
    [("90s", 90), ("1h30m", 5400), ("500ms", 0.5), ("2d", 172800), (3, 3), (0.5, 0.5), (timedelta(minutes=1), 60)],
)
def test_durations_as_people_write_them(given_, expected):
    assert seconds(given_) == expected


def test_backoff_grows_to_its_limit():
    backoff = Backoff("1s", 2, "10s")

    assert [backoff.delay(n) for n in (1, 2, 3, 4, 5, 1000)] == [1, 2, 4, 8, 10, 10]
    with pytest.raises(UsageError):
        Backoff(factor=0.5)


@pytest.mark.parametrize(
    ("error", "retry_on", "again"),
    [
        (ValueError(), None, True),
        (ValueError(), (OSError,), False),
        (OSError(), (OSError,), True),
        (Fatal(), (Exception,), False),
        (NotDone(), None, True),
        (NotDone(), (OSError,), True),
        (RetryAfter(5), None, True),
    ],
)
def test_what_is_tried_again(error, retry_on, again):
    found = next_try(RetryPolicy(1, Backoff(), retry_on), error, 1)

    assert (found is not None) == again
    assert next_try(RetryPolicy(1, Backoff(), retry_on), error, 2) is None


def test_doubt_is_retried_a_bounded_number_of_times():
    assert after_doubt(RetryPolicy(), 3) is not None
    assert after_doubt(RetryPolicy(), 4) is None
    assert after_doubt(RetryPolicy(retries=0), 1) is None
