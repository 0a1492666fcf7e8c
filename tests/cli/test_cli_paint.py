"""Tables fit the window, and data is never markup."""

from __future__ import annotations

import io

from rich.console import Console

from surefoot.cli import paint


def drawn(width, *rows):
    stream = io.StringIO()
    console = Console(file=stream, width=width, markup=False, highlight=False, emoji=False)
    paint.draw(("NAME", "STATUS", "ARGUMENTS", "RESULT"), rows, flexible=(2, 3), to=console)
    return stream.getvalue().splitlines()


def test_a_narrow_window_cuts_values_and_never_names():
    """A name is for pasting into the next command."""
    heading, row = drawn(70, ("[src%2Fmodule_01.py]/propose#1", "done", "x" * 60, "ok"))

    assert row.startswith("[src%2Fmodule_01.py]/propose#1  done ")
    assert len(row) <= 70
    assert heading.split() == ["NAME", "STATUS", "ARGUMENTS", "RESULT"]


def test_a_wide_window_shows_everything():
    assert "x" * 60 in drawn(200, ("a#1", "done", "x" * 60, "y" * 60))[1]


def test_what_looks_like_markup_is_only_text():
    """`[bold]` in an answer of a model is six characters."""
    assert "[bold]:smile:[/bold]" in drawn(200, ("a#1", "done", "[bold]:smile:[/bold]", ""))[1]


def test_wide_characters_keep_the_columns_straight():
    rows = drawn(200, ("世界#1", "done", "a", "b"), ("a#1", "done", "a", "b"))

    assert rows[1] == "世界#1  done    a          b"
    assert rows[2] == "a#1     done    a          b"
