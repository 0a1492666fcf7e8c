"""Colours and tables. The only verbs that load rich are those that draw something.

Strings become `Text`, never markup: `[red]` in somebody's data is five characters.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STYLES = {
    "damaged": "bold red",
    "stopped": "bold red",
    "failed": "red",
    "in doubt": "bold red",
    "value missing": "bold red",
    "cut off": "bold yellow",
    "waiting": "bold yellow",
    "queued": "yellow",
    "retrying": "yellow",
    "running": "cyan",
    "under way": "cyan",
    "sleeping": "cyan",
    "done": "green",
    "cancelled": "dim",
}

UNBROKEN = 4_000


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # Lines for another program are never broken to fit a terminal that is not there.
    width = None if stream.isatty() else UNBROKEN
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, keep_whole: Sequence[int] = ()) -> Table:
    """A plain table. Cells that name a status are coloured; columns not kept whole are cut at the window's edge."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, heading in enumerate(headings):
        if number in keep_whole:
            made.add_column(Text(heading), overflow="fold")
        else:
            made.add_column(Text(heading), no_wrap=True, overflow="ellipsis")
    for row in rows:
        made.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    return made
