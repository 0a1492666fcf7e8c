"""Whatever was recorded, looking at it is harmless."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.view import text

ANY_TEXT = st.text(st.characters())  # surrogates included
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(ANY_TEXT)
def test_no_text_can_act_on_a_terminal(anything):
    """Control, format, surrogate and separator characters are how text lies to a person."""
    shown = text.visible(anything)

    assert not {"Cc", "Cf", "Cs", "Zl", "Zp"} & {unicodedata.category(char) for char in shown}
    shown.encode()


def test_what_is_printable_is_left_alone():
    assert text.visible("Grüße, 世界 [bold]🙂") == "Grüße, 世界 [bold]🙂"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [("\x1b[2J", "\\x1b[2J"), ("a\u202eb", "a\\u202eb"), ("\ud800", "\\ud800"), ("\r\n", "\\r\\n"), ("\x9b", "\\x9b")],
)
def test_what_is_not_printable_is_shown_as_an_escape(raw, shown):
    assert text.visible(raw) == shown


def test_lines_are_kept_and_a_carriage_return_is_none():
    """A carriage return would let a line overwrite what stands before it."""
    assert text.visible_lines("a\tb\nc\rd\u2028e") == ["a    b", "c\\rd\\u2028e"]


def test_shortened_text_says_so():
    assert text.shorten("abcdef", 6) == "abcdef"
    assert text.shorten("abcdefg", 6) == "abcde…"


@given(st.recursive(TEXT | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)))
def test_json_keeps_its_meaning_and_cannot_act_on_a_terminal(value):
    """Programs must get what was recorded; a person may still look at it."""
    for indent in (None, 2):
        shown = text.to_json(value, indent=indent)

        assert json.loads(shown) == value
        assert shown.replace("\n", "").isprintable()


def test_a_lone_surrogate_survives_json():
    """It has no UTF-8, but JSON has a way to write it."""
    assert text.to_json("a\ud800") == '"a\\ud800"'


@pytest.mark.parametrize(
    ("micros", "shown"),
    [
        (0, "0 µs"),
        (999, "999 µs"),
        (1_500, "1.5 ms"),
        (3_210_000, "3.2 s"),
        (59_000_000, "59 s"),
        (250_000_000, "4 min 10 s"),
        (7_200_000_000, "2 h"),
        (90_061_000_000, "1 d 1 h"),
        (-5, "?"),
    ],
)
def test_lengths_of_time_are_told_in_the_units_that_matter(micros, shown):
    assert text.took(micros) == shown


def test_how_long_ago_is_told_even_if_the_clock_was_set_back():
    assert text.ago(5_000_000, 65_000_000) == "1 min ago"
    assert text.ago(5_000_000, 0) == "just now"


def test_pieces_tell_escapes_from_text_that_looks_like_one():
    r"""On a page they are boxed: a name that is written `\\x1b` is not taken for a control character."""
    text_ = "a\x1b[31m\\x1b\u202e\nb"

    found = text.pieces(text_)

    assert "".join(piece for piece, _ in found) == text.visible(text_)
    assert [piece for piece, is_escape in found if is_escape] == ["\\x1b", "\\u202e", "\\n"]
    assert text.pieces("") == []
    assert text.pieces("plain") == [("plain", False)]
