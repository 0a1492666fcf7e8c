"""Who did what: every word that a person said of any run, in the order written, newest first.

Found by index (`Index.said`), so it costs what people did and not what runs did. The records are as found: whoever wants to
rely on one opens its run, whose journal is verified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from surefoot.core.entry import EffectLandedLate, FellBack
from surefoot.core.seal import Record, from_record
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Damaged
from surefoot.store.pages import NEWEST

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import JournalEntry

_PAGE = 100
_BY_NOBODY = (FellBack, EffectLandedLate)
"""Nobody said it, and whoever reads what people did wants to know of it."""


class Said(Struct, frozen=True):
    """One line of the audit."""

    pos: int
    """Its position in the store: the cursor of the next page."""
    run: str
    by: str
    """Empty: nobody said it, it happened."""
    entry: JournalEntry | None
    """None: it cannot be read. `surefoot verify` says more."""
    seal: str
    """Hexadecimal."""


def said(runtime: Runtime, *, before: int = NEWEST, who: str = "", kinds: Collection[str] = ()) -> Iterator[Said]:
    """All of it before a position of the store, newest first; `kinds` by name: `EffectSettled`, `RunRewound` …"""
    while page := runtime.store.said(before, _PAGE):
        for pos, record in page:
            line = _line(pos, record)
            kind = line.entry.kind if line is not None and line.entry is not None else ""
            if line is not None and who in ("", line.by) and (not kinds or kind in kinds):
                yield line
        before = page[-1][0]


def _line(pos: int, record: Record) -> Said | None:
    """None: it is the word of a check, not of a person."""
    from surefoot.engine.operate.handle import journal_entry

    try:
        entry = from_record(record)
        told = journal_entry(record)
    except Damaged:
        return Said(pos, record.run, "", None, record.seal.hex())
    by = str(getattr(entry, "by", ""))
    if not by and not isinstance(entry, _BY_NOBODY):
        return None
    return Said(pos, record.run, by, told, record.seal.hex())
