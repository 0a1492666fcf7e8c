"""Journals that have moved to another store: whoever asks for one here is told where it is now.

The last entry of such a journal says so (`RunLeft`), and nothing may follow it. While the move is under way all entries
are still here before it; afterwards it stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from surefoot.core.cure import command
from surefoot.core.entry import KIND_OF, RunLeft, RunMoved
from surefoot.core.seal import Record, from_record
from surefoot.core.visible import visible
from surefoot.errors import MovedAway

_LEFT = KIND_OF[RunLeft]
_MOVED = KIND_OF[RunMoved]


def moved_away(what: str, entry: RunLeft, at: int, here: str, *, is_done: bool) -> MovedAway:
    """The error for whoever asks for it here."""
    day = datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if is_done:
        told = f"{visible(what)} was moved to {entry.url} on {day}. It is there, and no longer in {here}."
    else:
        told = (
            f"{visible(what)} is being moved from {here} to {entry.url} (since {day}), and stands still until that has "
            f"ended: {command('copy', from_=here, to=entry.url)}"
        )
    return MovedAway(told, store=entry.url)


def left_of(records: Sequence[Record]) -> RunLeft | None:
    """What the last of these sound records says about another store, if it does."""
    if not records or records[-1].kind != _LEFT:
        return None
    entry = from_record(records[-1])
    return entry if isinstance(entry, RunLeft) else None


def require_here(what: str, records: Sequence[Record], here: str) -> None:
    """`MovedAway`, if these sound records say that the journal is in another store now."""
    left = left_of(records)
    if left is not None:
        raise moved_away(what, left, records[-1].at, here, is_done=len(records) == 1)


def came(record: Record) -> bool:
    """Whether a record only says where those before it come from."""
    return record.kind == _MOVED
