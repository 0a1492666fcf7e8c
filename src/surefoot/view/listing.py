"""The list of runs: first the runs that need a person, then the rest, newest first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from surefoot.view import text
from surefoot.view.standing import Stands

COLUMNS: Final = ("STATUS", "RUN", "WORKFLOW", "STARTED", "WHY")


class Seen(Struct, frozen=True):
    """A run as it was when the list was made."""

    run: str
    workflow: str
    status: str
    created: int
    """Microseconds since 1970."""
    labels: dict[str, str]
    stands: Stands


def ordered(seen: Iterable[Seen]) -> list[Seen]:
    return sorted(seen, key=lambda one: (one.stands.rank, -one.created, one.run))


def row(seen: Seen, now: int) -> tuple[str, ...]:
    """One run in the list, by COLUMNS. Nothing here can act on a terminal."""
    since = text.ago(seen.created, now) if seen.created else ""
    names = map(text.visible, (seen.stands.status, seen.run, seen.workflow))
    return (*names, since, text.shorten(seen.stands.brief, 100))
