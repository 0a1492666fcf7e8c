"""The list of runs: what needs a person first, then the rest, newest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from surefoot.core.entry import Stop
from surefoot.view import standing, text


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a run when the list was made."""

    run: str
    workflow: str
    status: str
    created: int
    """Microseconds since 1970."""
    labels: dict[str, str]
    driven: bool = True
    stops: tuple[Stop, ...] = ()
    damage: str = ""
    """Why its journal cannot be read; empty if it can, or was not looked at."""


@dataclass(frozen=True, slots=True)
class Line:
    """One run in the list. Nothing here can act on a terminal."""

    run: str
    workflow: str
    status: str
    since: str
    why: str
    needs_a_person: bool


def ordered(seen: Iterable[Seen]) -> list[Seen]:
    return sorted(seen, key=lambda one: (standing.rank(stands(one)), -one.created, one.run))


def stands(seen: Seen) -> str:
    return standing.DAMAGED if seen.damage else standing.standing(seen.status, driven=seen.driven, stops=seen.stops)


def lines(seen: Iterable[Seen], now: int) -> list[Line]:
    return [_line(one, now) for one in ordered(seen)]


def _line(seen: Seen, now: int) -> Line:
    status = stands(seen)
    return Line(
        run=text.visible(seen.run),
        workflow=text.visible(seen.workflow),
        status=text.visible(status),
        since=text.ago(seen.created, now) if seen.created else "",
        why=text.shorten(seen.damage or standing.brief(status, seen.stops), 100),
        needs_a_person=status in standing.ORDER,
    )
