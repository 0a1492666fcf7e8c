"""The list of runs: what needs a person first, then the rest, newest first."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from surefoot.view import text
from surefoot.view.standing import Stands


class Seen(Struct, frozen=True):
    """What was seen of a run when the list was made."""

    run: str
    workflow: str
    status: str
    created: int
    """Microseconds since 1970."""
    labels: dict[str, str]
    stands: Stands


class Line(Struct, frozen=True):
    """One run in the list. Nothing here can act on a terminal."""

    run: str
    workflow: str
    status: str
    since: str
    why: str
    needs_a_person: bool


def ordered(seen: Iterable[Seen]) -> list[Seen]:
    return sorted(seen, key=lambda one: (one.stands.rank, -one.created, one.run))


def lines(seen: Iterable[Seen], now: int) -> list[Line]:
    return [_line(one, now) for one in ordered(seen)]


def _line(seen: Seen, now: int) -> Line:
    return Line(
        run=text.visible(seen.run),
        workflow=text.visible(seen.workflow),
        status=text.visible(seen.stands.status),
        since=text.ago(seen.created, now) if seen.created else "",
        why=text.shorten(seen.stands.brief, 100),
        needs_a_person=seen.stands.needs_a_person,
    )
