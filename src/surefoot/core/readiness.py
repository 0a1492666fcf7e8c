"""Who may take a run up next, and from when on: what a worker looks for in the index.

Derived from the same entries as the run's status, in one place, so that the writer of an entry and everybody who folds
it later come to the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core.entry import (
    FENCES,
    LETTING_GO,
    CallsReopened,
    Entry,
    FellBack,
    QuestionAsked,
    QuestionExpired,
    RunAdopted,
    RunCreated,
    RunReleased,
    RunRewound,
    RunStopped,
    RunSuspended,
)
from surefoot.core.need import NO_NEED, Need, of_end, of_question, of_stops
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
_MOVING: Final = FENCES | LETTING_GO | {QuestionAsked, QuestionExpired}
"""The entries after which a run stands in another way. Checked first: `match` costs six times as much as this."""


def moved(
    entry: Entry, at: int, standing: Standing, *, starts: int, answered: Callable[[Entry], bool]
) -> Standing | None:
    """How the run stands after this entry; None: as before, which is `standing`.

    `starts` says how often it was taken up without getting anywhere; `answered`, whether what it waits for is there
    already (somebody was quicker than the run was to stand still).
    """
    if type(entry) not in _MOVING:
        return None
    match entry:
        case RunCreated(due=due):
            return Standing(at if due is None else due.at)
        case RunAdopted(worker=worker):
            return Standing(None, worker)
        case RunReleased(why=why):
            # A run that could not go on is not tried again at once, and is tried less and less often.
            seconds = 0 if why == HANDED_BACK else min(2 ** max(starts, 0), LONGEST_BACK_OFF)
            return Standing(at + seconds * MICROS)
        case RunStopped(stops=stops):
            reason, need = stops[0].reason if stops else "", of_stops(stops, entry.due, at)
            return Standing(at if answered(entry) else goes_on(entry, at), reason=reason, need=need)
        case RunSuspended():
            return Standing(at if answered(entry) else goes_on(entry, at))
        case QuestionAsked():  # Its process may live on and wait for the answer.
            return replace(standing, need=of_question(entry, at))
        case QuestionExpired(address=address):
            return replace(standing, need=NO_NEED) if standing.need.address == address else None
        case FellBack() | RunRewound() | CallsReopened():
            return Standing(at)
    left, error = getattr(entry, "left", ()), getattr(entry, "error", None)
    return Standing(reason=LEFT_BEHIND if left else "", need=of_end(left, error, at)) if left or error else NOBODY


def goes_on(still: Any, now: int) -> int | None:
    """When a run that stands still goes on, or looks again, by itself. `still` has `due` and `children`."""
    dues = [] if still.due is None else [still.due.at]
    looks = [now + LOOK_AGAIN_SECONDS * MICROS] if still.children else []
    return min(dues + looks, default=None)
