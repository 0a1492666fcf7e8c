"""Generations of an explicit checkpoint: what one is, which one counts, and which may go.

The newest generation whose seal holds and whose state can be read is the state. None goes before two newer ones
were read again, whole. What is damaged is stepped over, never repaired, never merged.

Pure: shelves (`store/generation_journal.py`, `store/generation_files.py`) find and keep them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from surefoot.errors import SurefootError

FEWEST: Final = 3
"""So many generations are kept at least."""
LEAP: Final = 1_000_000
"""A number that a damaged record claims is believed up to here beyond its neighbour's."""

Watch = dict[str, dict[str, str]]
"""What each witness saw: witness -> part -> fingerprint."""


class Saved(Struct, frozen=True):
    """What is written as one generation."""

    schema: int
    at: int
    """Wall clock, microseconds since 1970."""
    host: str
    pid: int
    watch: Watch
    state: bytes
    """In its stored form."""
    specs: Watch = {}
    """How to look again, for those witnesses that say so."""
    by: str = ""
    """Who accepted the world as it was found, where nothing else was saved."""
    note: str = ""


class Seen(Struct, frozen=True):
    """A generation as found. Its seal holds, unless `why` says what is wrong with it."""

    number: int
    why: str = ""
    unknown: SurefootError | None = None
    """Sound, but written by a newer version of surefoot. That is no damage, and nothing to step over."""
    at: int = 0
    schema: int = 0
    host: str = ""
    pid: int = 0
    size: int = 0
    """Bytes of the state in its stored form."""
    watch: Watch = {}
    specs: Watch = {}
    by: str = ""
    note: str = ""
    source: Any = None
    """Where its shelf finds the rest."""

    @property
    def sound(self) -> bool:
        return not self.why and self.unknown is None


class Shelved(Struct, frozen=True):
    """All that is there of a checkpoint."""

    seen: Sequence[Seen]
    """By number, the oldest first. Those that are known to be lost are among them."""
    newest: int
    """The highest number that was ever given, as far as anything tells. It is never given again."""
    mark: bytes
    """Names this very history: it changes with every save."""
    doubt: str = ""
    """What is wrong with the note of the newest generation."""
    source: Any = None

    @property
    def damaged(self) -> bool:
        return bool(self.doubt) or any(one.why for one in self.seen)


def retained(seen: Sequence[Seen], keep: int, fault: Callable[[Seen], str]) -> list[Seen] | None:
    """The generations that stay when one more is saved; None: all of them do.

    `fault` reads a generation again, whole. Only what has two newer ones that were just read may go, so that a
    store which is going bad is never thinned out on the word of an earlier day.
    """
    if len(seen) < 2 * keep:
        return None
    read: list[Seen] = []
    for one in reversed(seen):
        if len(read) == keep - 1:  # the new one makes it `keep`
            break
        if one.sound and not fault(one):
            read.append(one)
    return read[::-1] if len(read) >= FEWEST - 1 else None


def plausible(after: int, *claims: object) -> int:
    """The number of a damaged generation that stands behind number `after`: what it says, if that can be right."""
    found = [claim for claim in claims if type(claim) is int and after < claim <= after + LEAP]
    return min(found, default=after + 1)
