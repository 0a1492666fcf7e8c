"""Colours and tables. rich is loaded only if there may be colours, or characters of other widths.

Strings become `Text`, never markup: `[red]` in user data is five characters.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from surefoot.cli import output

if TYPE_CHECKING:
    from rich.console import Console

_WORDS = {
    "bold red": ("damaged", "stopped", "in doubt", "value missing", "bad"),
    "red": ("failed",),
    "bold yellow": ("cut off", "waiting", "warn"),
    "yellow": ("ready", "queued", "retrying"),
    "cyan": ("running", "under way", "sleeping"),
    "green": ("done", "ok"),
    "dim": ("cancelled", "moved"),
}
STYLES = {word: style for style, words in _WORDS.items() for word in words}

SPACE = "  "
UNBROKEN = 4_000
NARROWEST = 12


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # Lines for another program are never broken to fit a terminal.
    width = None if stream.isatty() else UNBROKEN
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def draw(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, flexible: Sequence[int], to: Console | None = None
) -> None:
    """A table, one line for each row. Only the flexible columns are cut to fit the window: a name is never cut."""
    cells = [headings, *rows]
    if to is None and not _may_have_colours():
        output.say("\n".join(map(SPACE.join, _fitted(cells, UNBROKEN, flexible))))
        return
    from rich.text import Text

    to = to or console()
    table = Text()
    for row, fitted in zip(cells, _fitted(cells, to.width, flexible), strict=True):
        styles = (STYLES.get(cell, "") if table else "bold" for cell in row)
        line = Text(SPACE).join(Text(cell, style=style) for cell, style in zip(fitted, styles, strict=True))
        table.append("\n" * bool(table)).append_text(line)
    to.print(table, soft_wrap=True)


def _may_have_colours() -> bool:
    """Whether rich has to decide. It takes a while to load."""
    return sys.stdout.isatty() or not os.environ.keys().isdisjoint(("FORCE_COLOR", "TTY_COMPATIBLE"))


def _fitted(cells: Sequence[Sequence[str]], window: int, flexible: Sequence[int]) -> list[list[str]]:
    """The cells, cut and padded to the widths of their columns; the last one is not padded."""
    widths = _widths(cells, window, flexible)
    return [[*map(_padded, row[:-1], widths), _cut(row[-1], widths[-1])] for row in cells]


def _padded(cell: str, width: int) -> str:
    cut = _cut(cell, width)
    return cut + " " * (width - _length(cut))


def _widths(cells: Sequence[Sequence[str]], window: int, flexible: Sequence[int]) -> list[int]:
    widths = [max(map(_length, column)) for column in zip(*cells, strict=True)]
    room = window - len(SPACE) * (len(widths) - 1) - sum(width for n, width in enumerate(widths) if n not in flexible)
    for left, column in zip(range(len(flexible), 0, -1), sorted(flexible, key=lambda n: widths[n]), strict=True):
        # The narrowest takes what it needs, the wider ones share the rest.
        widths[column] = min(widths[column], max(room // left, NARROWEST))
        room -= widths[column]
    return widths


def _cut(cell: str, width: int) -> str:
    if _length(cell) <= width:
        return cell
    from rich.cells import set_cell_size

    return set_cell_size(cell, width - 1) + "…"


def _length(cell: str) -> int:
    """Its width on the terminal: some characters take two places, or none."""
    if cell.isascii() and cell.isprintable():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)
