"""Where two recorded values differ, as a person is shown it: the place, a little of the text, and never a secret."""

from __future__ import annotations

import msgspec
import pytest

from surefoot.core.differences import AROUND, MOST_PLACES, changes, hints


def told(before, now):
    return [change.line() for change in changes(msgspec.json.encode(before), msgspec.json.encode(now))]


def hinted(before, now):
    return hints(msgspec.json.encode(before), msgspec.json.encode(now))


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        ({"to": "a"}, {"to": "b"}, ['to: "a" -> "b"']),
        ({"to": "a"}, {"to": "a"}, []),
        ({"n": 1}, {"n": "1"}, ['n: 1 -> "1"']),
        ({"n": 1}, {"n": True}, ["n: 1 -> true"]),
        ({"a": 1}, {"a": 1, "b": 2}, ["b: not there -> 2"]),
        ({"a": 1, "b": None}, {"a": 1}, ["b: null -> not there"]),
        ({"m": [{"role": "x"}]}, {"m": [{"role": "y"}]}, ['m[0].role: "x" -> "y"']),
        ({"m": [1, 2]}, {"m": [1]}, ["m[1]: 2 -> not there"]),
        ({"d": {"a b": 1}}, {"d": {"a b": 2}}, ['d["a b"]: 1 -> 2']),
        ("x", "y", ['it: "x" -> "y"']),
        ({"d": {"$date": "2024"}}, {"d": {"$date": "2025"}}, ['d: "2024" -> "2025"']),
        ({"o": {"$type": ["O", {"n": 1}]}}, {"o": {"$type": ["O", {"n": 2}]}}, ["o.n: 1 -> 2"]),
        (
            {"m": {"$type": ["M", "BEST", {"value": "a"}]}},
            {"m": {"$type": ["M", "BEST", {"value": "b"}]}},
            ['m.value: "a" -> "b"'],
        ),
        (
            {"m": {"$type": ["M", "A"]}},
            {"m": {"$type": ["M", "B", {"value": 1}]}},
            ['m: "A" -> "B"', "m.value: not there -> 1"],
        ),
        ({"m": {"$type": ["M", "A"]}}, {"m": {"$type": ["N", "A"]}}, ['m[0]: "M" -> "N"']),
    ],
)
def test_a_difference_is_named_as_one_would_write_it(before, now, lines):
    assert told(before, now) == lines


def test_at_most_five_places_are_named():
    assert len(told({"n": list(range(50))}, {"n": list(range(1, 51))})) == MOST_PLACES


@pytest.mark.parametrize("size", [0, 5, AROUND, AROUND + 1, 100_000])
def test_the_changed_letter_is_shown_with_a_little_around_it(size):
    """In a text of any length."""
    (line,) = told({"p": "x" * size + "A" + "y" * size}, {"p": "x" * size + "B" + "y" * size})

    ahead, behind = "x" * min(size, AROUND), "y" * min(size, AROUND)
    cut = "…" if size > AROUND else ""
    assert line == f'p: "{cut}{ahead}A{behind}{cut}" -> "{cut}{ahead}B{behind}{cut}"'


def test_a_long_change_is_cut_in_its_middle():
    (line,) = told({"p": "a" * 1000}, {"p": "b" * 1000})

    assert len(line) < 12 * AROUND
    assert "…" in line


def test_text_that_was_put_in_or_taken_out_is_shown():
    assert told({"p": "You are a clerk."}, {"p": "You are a careful clerk."}) == [
        'p: "You are a clerk." -> "You are a careful clerk."'
    ]


def test_what_is_recorded_as_secret_stays_so():
    assert told({"k": {"$secret": "***"}}, {"k": "new"}) == ['k: {"$secret":"***"} -> "new"']


def test_what_is_shown_cannot_act_on_a_terminal():
    """The arguments may come from anybody."""
    (line,) = told({"p": "\x1b[2Ja"}, {"p": "\x1b[2Jb"})

    assert "\x1b" not in line


def test_bytes_that_are_no_value_are_shown_as_they_are():
    assert [change.line() for change in changes(b"\xff{", b"\xff[")] == ['it: "\ufffd{" -> "\ufffd["']


@pytest.mark.parametrize(
    ("before", "now", "hint"),
    [
        ("0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "looks random"),
        ("deadbeefdeadbeef00", "feedbeefdeadbeef11", "looks random"),
        ("2024-05-01T10:00:00", "2024-05-02 11:30", "looks like a time: use sf.now()"),
        (1714557600.25, 1714557611.5, "looks like a time"),
        (1714557600123, 1714557611456, "looks like a time"),
        (["x", "y"], ["y", "x"], "the same items in another order: was a set, a dict or a folder iterated?"),
        ([[1, 2], {"a": [3, 4]}], [[1, 2], {"a": [4, 3]}], "the same items in another order"),
    ],
)
def test_a_difference_that_is_often_a_mistake_is_told_as_one(before, now, hint):
    (said,) = hinted({"x": before}, {"x": now})

    assert hint in said


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("ann", "bob"),
        (1, 2),
        (["x", "y"], ["y", "z"]),
        (["x", "y"], ["x", "y", "z"]),
        ([1], [1]),
        ("2024-05-01T10:00:00", "later"),
    ],
)
def test_other_differences_are_not_explained_away(before, now):
    assert hinted({"x": before}, {"x": now}) == []


def test_two_places_get_no_hint():
    """Only where nothing else differs is it worth a guess."""
    before, now = "2024-05-01T10:00:00", "2024-05-02T10:00:00"

    assert hinted({"a": before, "b": 1}, {"a": now, "b": 2}) == []
