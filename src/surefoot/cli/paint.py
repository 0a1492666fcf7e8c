"""Colours and tables. The only verbs that load rich are those that draw something.

Strings become `Text`, never markup: `[red]` in somebody's data is five characters.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {
    "damaged": "bold red",
    "stopped": "bold red",
    "failed": "red",
    "in doubt": "bold red",
    "value missing": "bold red",
    "cut off": "bold yellow",
    "waiting": "bold yellow",
    "ready": "yellow",
    "queued": "yellow",
    "retrying": "yellow",
    "running": "cyan",
    "under way": "cyan",
    "sleeping": "cyan",
    "done": "green",
    "cancelled": "dim",
    "ok": "green",
    "warn": "bold yellow",
    "bad": "bold red",
}

UNBROKEN = 4_000
NARROWEST = 12


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # Lines for another program are never broken to fit a terminal that is not there.
    width = None if stream.isatty() else UNBROKEN
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def draw(to: Console, headings: Sequence[str], rows: Sequence[Sequence[str]], *, flexible: Sequence[int]) -> None:
    """A table, one line for each row. Only the flexible columns are cut to fit the window: a name is never cut."""
    from rich.text import Text

    cells = [headings, *rows]
    widths = _widths(cells, to.width, flexible)
    for number, row in enumerate(cells):
        line = Text()
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            part = Text(cell, style=STYLES.get(cell, "") if number else "bold")
            part.truncate(width, overflow="ellipsis", pad=column < len(row) - 1)
            line.append_text(part).append("  " if column < len(row) - 1 else "")
        to.print(line, soft_wrap=True)


def _widths(cells: Sequence[Sequence[str]], window: int, flexible: Sequence[int]) -> list[int]:
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    room = window - 2 * (len(widths) - 1) - sum(width for n, width in enumerate(widths) if n not in flexible)
    for left, column in zip(range(len(flexible), 0, -1), sorted(flexible, key=lambda n: widths[n]), strict=True):
        # The narrowest takes what it needs, the wider ones share the rest.
        widths[column] = min(widths[column], max(room // left, NARROWEST))
        room -= widths[column]
    return widths
