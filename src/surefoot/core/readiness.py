"""Which worker may take a run up next, and from when on: what a worker searches for in the index.

Derived from the same entries as the run's status, in one place, so that the writer of an entry and every process that
folds it later get the same answer.
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
"""The reason beside a run that has ended, and left effects in doubt or done: a person should look at them."""
HANDED_BACK: Final = "handed back"
"""Why a worker that is being stopped releases a run: another one may go on at once."""
LONGEST_BACK_OFF: Final = 60
LOOK_AGAIN_SECONDS: Final = 300
"""How often a run that waits for children checks whether one has ended without a message."""


class Standing(Struct, frozen=True):
    wake: int | None = None
    """Microseconds since 1970; None: not before another entry is written, or its claimant dies."""
    worker: str = ""
    """The claimant."""
    reason: str = ""
    """The name of its first stop; or `LEFT_BEHIND`."""
    need: Need = NO_NEED
    """What a person has to do for it."""


NOBODY: Final = Standing()
MOVING: Final = FENCES | LETTING_GO | {QuestionAsked, QuestionExpired}
"""The entries that change the standing of a run. Callers check this first: nearly all entries are others."""


def moved(
    entry: Entry, at: int, standing: Standing, *, starts: int, answered: Callable[[Entry], bool]
) -> Standing | None:
    """The standing of the run after this entry; None: as before, which is `standing`.

    `starts`: how often the run was taken up without progress. `answered`: whether the answer that it waits for is
    there already (it came before the run stopped).
    """
    if type(entry) not in MOVING:
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
    """When a stopped run goes on, or looks again, by itself. `still` has `due` and `children`."""
    dues = [] if still.due is None else [still.due.at]
    looks = [now + LOOK_AGAIN_SECONDS * MICROS] if still.children else []
    return min(dues + looks, default=None)
