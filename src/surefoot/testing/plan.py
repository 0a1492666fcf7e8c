"""What is tried: a kill at every boundary, damage after every write, and the mishaps where they can happen.

The uninterrupted run shows where that is: which effects return something that can get lost, which do more than one thing
and may fail in between, and which start something that outlives their process: a request, a program, a line of the ledger.
It also shows which files the run relies on, and writes later: those may be edited by somebody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from surefoot.core.entry import QuestionAsked
from surefoot.core.visible import shorten
from surefoot.errors import UsageError
from surefoot.testing import probe
from surefoot.testing.damaging import DAMAGES
from surefoot.testing.mishaps import EDITED, FAILS, LATE, LOST, USUAL
from surefoot.testing.probe import AFTER, CALL, EFFECT, INSIDE, INTENDED, OUTLIVING, WRITE, LogLine, Point, where
from surefoot.testing.worlds import LEDGER, is_excluded

_WINDOWS: Final = (f"{AFTER}:{WRITE}:{QuestionAsked.__name__}", f"{AFTER}:{WRITE}:{INTENDED}")
_APPROVAL: Final = ".approval"
"""The question whether an effect may run, after the address of the effect."""
Struck = tuple[str, str]
"""A boundary, and what happens there."""


class Plan(Struct, frozen=True):
    kills: list[str] = []
    damages: list[Struck] = []
    mishaps: list[Struck] = []


def planned(
    events: Sequence[LogLine], run: str, *, damage: bool, at: str | None, exclude: Sequence[str] = ()
) -> Plan:  # fmt: skip
    """All of it; or what is to happen at one boundary. Files that fit one of `exclude` are left alone."""
    boundaries = [event.text for event in events if event.what == probe.AT]
    mishaps = [*_mishaps(events, run), *((target, EDITED) for target in edits(events, run, exclude))]
    if at is None:
        written = [one for one in boundaries if damage and one.startswith("after:write")]
        return Plan(boundaries, [(one, how) for one in written for how in DAMAGES], mishaps)
    if at in boundaries:
        return Plan([at], [(at, how) for how in DAMAGES] if damage else [])
    target, _, how = at.rpartition("+")
    if target in boundaries and how in DAMAGES:
        return Plan(damages=[(target, how)])
    if (target, how) in mishaps:
        return Plan(mishaps=[(target, how)])
    known = ", ".join([*boundaries, *(f"{target}+{how}" for target, how in mishaps)])
    raise UsageError(
        f"there is no boundary {at!r}. There are: {shorten(known, 2000)}; each boundary also with one of "
        f"{', '.join(f'+{how}' for how in DAMAGES)} at its end."
    )


def _mishaps(events: Sequence[LogLine], run: str) -> list[Struck]:
    """In the order in which an uninterrupted run comes to them."""
    found: list[Struck] = []
    calls: dict[str, _Call] = {}
    for event in events:
        match event.what:
            case probe.BEGUN if event.kind == EFFECT:
                calls[where(run, event.run, event.address)] = _Call(event)
            case probe.ENDED if (call := calls.get(where(run, event.run, event.address))) is not None:
                call.returned = bool(event.value)
            case probe.TOUCHED if event.value == LEDGER and (call := calls.get(where(run, event.run, event.address))):
                call.notes = True
            case probe.AT if (call := calls.get(Point.of(event.text).address)) is not None:
                found += [(event.text, how) for how in call.may_meet(Point.of(event.text))]
            case _:
                pass
    return found


class _Call:
    """An effect that is under way in the uninterrupted run."""

    def __init__(self, begun: LogLine) -> None:
        self._begun = begun
        self._inside = 0
        self.returned = False
        self.notes = False
        """Whether the next thing it does is a line in the ledger: a fake of what is elsewhere."""

    def may_meet(self, point: Point) -> list[str]:
        if (point.side, point.what) == (AFTER, CALL) and self.returned:
            return [LOST if way == USUAL else f"{LOST}-{way}" for way in self._begun.text.split(",")]
        if point.side != INSIDE:
            return []
        self._inside += 1
        outlives = point.detail in OUTLIVING or self.notes
        self.notes = False
        found = [FAILS] if self._inside > 1 else []
        return [*found, LATE] if outlives and self._begun.policy == "check" else found


def lags(events: Sequence[LogLine], run: str) -> dict[str, int]:
    """How long, in microseconds, the rest of a call took from each boundary inside it."""
    ended = {where(run, event.run, event.address): event.us for event in events if event.what == probe.ENDED}
    inside = [(event, Point.of(event.text)) for event in events if event.what == probe.AT and event.us]
    return {event.text: ended[point.address] - event.us for event, point in inside if point.address in ended}


def edits(events: Sequence[LogLine], run: str, exclude: Sequence[str] = ()) -> dict[str, list[str]]:
    """Where somebody else may edit which files: those that the run relies on by then, and writes later.

    That is while it waits for a person, who was shown what the effect in question touches, and while an effect that is
    about to run has not run yet.
    """
    found = {}
    touched: dict[str, list[str]] = {}
    for event in events:
        if event.what == probe.EXPECTED:
            touched.setdefault(where(run, event.run, event.address), []).append(event.value)
    expected: dict[str, None] = {}
    for number, event in enumerate(events):
        if event.what == probe.EXPECTED:
            expected[event.value] = None
        if event.what != probe.AT or not event.text.startswith(_WINDOWS):
            continue
        shown = touched.get(Point.of(event.text).address.removesuffix(_APPROVAL), [])
        later = {one.value for one in events[number:] if one.what == probe.TOUCHED and one.address}
        names = later.intersection([*expected, *shown])
        if left := sorted(name for name in names if not is_excluded(name, exclude)):
            found[event.text] = left
    return found
