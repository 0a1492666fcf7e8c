"""Who may take a run up next, and from when on: what a worker looks for in the index.

Derived from the same entries as the run's status, in one place, so that the writer of an entry and everybody who folds
it later come to the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from surefoot.core.entry import (
    CallsReopened,
    Entry,
    FellBack,
    RunAdopted,
    RunCancelled,
    RunCreated,
    RunDone,
    RunFailed,
    RunPruned,
    RunReleased,
    RunRewound,
    RunStopped,
    RunSuspended,
)
from surefoot.core.need import NO_NEED, Need, of_end, of_stops
from surefoot.core.timer import MICROS

LEFT_BEHIND: Final = "LeftBehind"
"""The reason beside a run that has ended, and left effects in doubt or done: somebody should look at them."""
HANDED_BACK: Final = "handed back"
"""Why a worker that is being stopped releases a run: another one may go on at once."""
LONGEST_BACK_OFF: Final = 60
LOOK_AGAIN_SECONDS: Final = 300
"""How often a run that waits for children looks whether one has ended without a word."""


class Standing(Struct, frozen=True):
    wake: int | None = None
    """Microseconds since 1970; None: not before somebody writes something, or its claimant dies."""
    worker: str = ""
    """Who has claimed it."""
    reason: str = ""
    """The first of its stops, by name; or that it has left something behind."""
    need: Need = NO_NEED
    """What of it waits for a person."""


NOBODY: Final = Standing()


def moved(entry: Entry, at: int, *, starts: int, answered: Callable[[Entry], bool]) -> Standing | None:
    """How the run stands after this entry; None: as before.

    `starts` says how often it was taken up without getting anywhere; `answered`, whether what it waits for is there
    already (somebody was quicker than the run was to stand still).
    """
    move = _MOVES.get(type(entry))
    return None if move is None else move(entry, at, starts, answered)


def ready(at: int, need: Need = NO_NEED) -> Standing:
    return Standing(at, need=need)


def _created(entry: Any, at: int, *_: Any) -> Standing:
    return Standing(at if entry.due is None else entry.due.at)


def _adopted(entry: Any, *_: Any) -> Standing:
    return Standing(None, entry.worker)


def _released(entry: Any, at: int, starts: int, _: Any) -> Standing:
    """One that could not go on is not tried again at once, nor more and more often."""
    if entry.why == HANDED_BACK:
        return ready(at)
    return ready(at + min(2 ** max(starts, 0), LONGEST_BACK_OFF) * MICROS)


def _stopped(entry: Any, at: int, _: int, answered: Callable[[Entry], bool]) -> Standing:
    reason = entry.stops[0].reason if entry.stops else ""
    need = of_stops(entry.stops, entry.due)
    return Standing(at if answered(entry) else goes_on(entry, at), reason=reason, need=need)


def _suspended(entry: Any, at: int, _: int, answered: Callable[[Entry], bool]) -> Standing:
    return Standing(at if answered(entry) else goes_on(entry, at))


def goes_on(still: Any, now: int) -> int | None:
    """When a run that stands still goes on, or looks again, by itself. `still` has `due` and `children`."""
    dues = [] if still.due is None else [still.due.at]
    looks = [now + LOOK_AGAIN_SECONDS * MICROS] if still.children else []
    return min(dues + looks, default=None)


def _ready(_: Any, at: int, *__: Any) -> Standing:
    return ready(at)


def _ended(entry: Any, *_: Any) -> Standing:
    left, error = getattr(entry, "left", ()), getattr(entry, "error", None)
    return Standing(reason=LEFT_BEHIND if left else "", need=of_end(left, error)) if left or error else NOBODY


_MOVES: Final[dict[type[Entry], Callable[..., Standing]]] = {
    RunCreated: _created,
    RunAdopted: _adopted,
    RunReleased: _released,
    RunStopped: _stopped,
    RunSuspended: _suspended,
    FellBack: _ready,
    RunRewound: _ready,
    CallsReopened: _ready,
    RunDone: _ended,
    RunFailed: _ended,
    RunCancelled: _ended,
    RunPruned: _ended,
}
