"""What people declared about recorded calls and the code of today (`surefoot match`).

Which call it is, and what happens to a record whose arguments differ now, are two questions: the newest answer to
each counts. It counts for what was shown: the same call with other arguments is a new question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from surefoot.core.entry import CodeMatched
from surefoot.core.history import Past, PastState
from surefoot.core.matching.answers import KEEP, RERUN, Asked

IS: Final = "is"
NEW: Final = "new"
IDENTITY: Final = (IS, NEW)
"""Which call it is …"""
MANNER: Final = (KEEP, RERUN)
"""… and what happens to a record whose arguments differ now."""
UNASKED: Final = "unasked"
"""In place of arguments: the declaration is about recorded calls that the code did not ask for."""


class Words:
    """All declarations about one segment of a run, with their entries."""

    def __init__(self, matches: Iterable[tuple[int, CodeMatched]]) -> None:
        self._matches = tuple(matches)
        self.is_none = not self._matches

    def _said(self, *how: str) -> Iterator[tuple[int, CodeMatched]]:
        """The newest first."""
        return ((seq, match) for seq, match in reversed(self._matches) if match.how in how)

    def identity(self, asked: Asked) -> CodeMatched | None:
        """A person's declaration which recorded call it is, or that it is new."""
        return next(
            (match for _, match in self._said(*IDENTITY) if _is_about(match, asked.address, asked.digest)), None
        )

    def new_since(self, asked: Asked) -> int:
        """The entry in which a person declared it new."""
        return next((seq for seq, match in self._said(NEW) if _is_about(match, asked.address, asked.digest)), 0)

    def is_new(self, address: str) -> bool:
        """Whether a person declared this call new, with any arguments."""
        return any(fits(match.address, address) for _, match in self._said(NEW))

    def given_to(self, recorded: str) -> str:
        """The call that a person matched this record with."""
        newest = {match.address: match for _, match in self._matches if match.how in IDENTITY}
        said = (match for match in newest.values() if match.how == IS and match.address != recorded)
        return next((match.address for match in said if match.other == recorded), "")

    def manner(self, asked: Asked, past: Past) -> CodeMatched | None:
        """A person's declaration that it is kept, or runs again: by its name of today, or by the recorded one."""
        today = self.manner_at(asked, asked.address, past.first)
        return today or self.manner_at(asked, past.address, past.first)

    def manner_at(self, asked: Asked, address: str, made: int = 0) -> CodeMatched | None:
        """`made`: the entry that made its record. A pattern does not count for records made after it."""
        said = (match for seq, match in self._said(*MANNER) if seq > made or "*" not in match.address)
        return next((match for match in said if _is_about(match, address, asked.digest)), None)

    def keeps(self, past: Past, digest: str) -> bool:
        """Whether a person declared that the record of a verb stands, though the verb asks for something else now."""
        said = (match for seq, match in self._said(KEEP) if seq > past.first or "*" not in match.address)
        return any(_is_about(match, past.address, digest) for match in said)

    def leaves(self, past: Past) -> bool:
        """Whether a person declared that the effect stands and the code leaves it out. Not for effects in doubt."""
        if self.is_none or past.state not in (PastState.DONE, PastState.FAILED):
            return False
        said = [match for seq, match in self._said(KEEP) if past.first < seq and fits(match.address, past.address)]
        # Declared for one call and no arguments, it is about the record, whatever the code asks for.
        return any(UNASKED in match.shown or not (match.shown or "*" in match.address) for match in said)


def _is_about(match: CodeMatched, address: str, digest: str) -> bool:
    return fits(match.address, address) and (not match.shown or digest in match.shown)


def fits(pattern: str, address: str) -> bool:
    """`*` stands for any characters, also for none."""
    return pattern == address or _starred(pattern).fullmatch(address) is not None


def _starred(pattern: str) -> re.Pattern[str]:
    return re.compile("(.*)".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def filled(match: CodeMatched, address: str) -> str:
    """The recorded call that is meant: the stars of the pattern are filled in."""
    found = _starred(match.address).fullmatch(address)
    parts = match.other.split("*")
    stars = list(found.groups()) if found is not None else []
    return "".join(part + (stars[i] if i < min(len(stars), len(parts) - 1) else "") for i, part in enumerate(parts))
