"""The result of a drive, as a value: how it ended, the state of the run, and when the run wants to be driven again."""

from __future__ import annotations

from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from surefoot.core.need import NO_NEED, Need
from surefoot.core.readiness import LOOK_AGAIN_SECONDS
from surefoot.core.state import DRIVEN, RunState
from surefoot.core.timer import MICROS, remaining
from surefoot.engine.drive import claimant
from surefoot.engine.drive.conclusion import Suspended
from surefoot.engine.drive.takeover import Ended, LeftToOthers, PassedBy, Takeover
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Cancelled, Damaged, Fenced, Stopped, StoreUnavailable, UsageError

DONE, FAILED, CANCELLED, STOPPED, SUSPENDED = "done", "failed", "cancelled", "stopped", "suspended"
PASSED_BY, DAMAGED, TROUBLE = "passed by", "damaged", "trouble"
QUIET: Final = frozenset({DONE, SUSPENDED, CANCELLED, PASSED_BY})
"""Ends that need no person."""
OVER: Final = frozenset({DONE, CANCELLED, FAILED})
"""Ends after which a run waits for nothing."""
UNCERTAIN: Final = frozenset({PASSED_BY, DAMAGED, TROUBLE})
"""Ends after which others may have written more than this process has read."""
LEFT_SECONDS: Final = 15.0
"""How long a run that is left to workers with other code is not checked again."""


class Stand(Struct, frozen=True):
    """The state of a run, for the next drive."""

    run: str
    status: str
    wake: int | None = None
    """When it wants to be driven again, microseconds since 1970; None: not before the bell rings for it."""
    reason: str = ""
    """The name of its first stop."""
    need: Need = NO_NEED
    """What a person has to do for it."""
    holder: str = ""
    """The living worker that drives it at this moment."""
    busy_until: int | None = None
    """Until when the holder counts as alive, though it may be dead. None: it is certainly alive, or there is none."""


class DriveResult(Struct, frozen=True):
    """The result of one drive."""

    run: str
    how: str
    """One of the words above."""
    stand: Stand | None = None
    """None: it cannot be read, or the store is away."""
    error: BaseException | None = None
    """The exception that ended the drive, unless the run is done."""


_BY_ERROR: Final = (
    (Cancelled, CANCELLED),
    (Damaged, DAMAGED),
    (Stopped, STOPPED),
    ((Fenced, StoreUnavailable, UsageError), TROUBLE),
    (Exception, FAILED),
)
"""Exceptions that end a drive, the particular before the general."""


def how(end: Takeover) -> str:
    """How a drive has ended, in one word."""
    match end:
        case Ended(None):
            return DONE
        case Ended(error):
            return next((word for kind, word in _BY_ERROR if isinstance(error, kind)), TROUBLE)
        case Suspended():
            return SUSPENDED
        case PassedBy() | LeftToOthers():
            return PASSED_BY
        case _:
            assert_never(end)


def of(runtime: Runtime, state: RunState) -> Stand:
    """The state according to the journal."""
    holder = state.claimant.worker if state.claimant and claimant.is_driven(runtime, state) else ""
    until = runtime.store.alive_until(holder) if holder else None
    standing = state.standing
    return Stand(state.run, state.status, _wake(runtime, state, holder), standing.reason, standing.need, holder, until)


def _wake(runtime: Runtime, state: RunState, holder: str) -> int | None:
    now, due, wake = runtime.clock.read(), state.due, state.standing.wake
    if state.claimant is not None and state.status in DRIVEN and not holder:
        return now.wall  # Its process is gone.
    if due is not None and wake == due.at:
        return now.wall + round(remaining(due, now) * MICROS)  # The wall clock may have been set since.
    return wake


def rested(found: Stand, end: Takeover, now: int) -> Stand:
    """The state of a run that was checked without result: it would be ready at once again, so the next check waits."""
    pause = LEFT_SECONDS if isinstance(end, LeftToOthers) else LOOK_AGAIN_SECONDS
    is_ready = found.wake is not None and found.wake <= now
    return replace(found, wake=now + round(pause * MICROS)) if is_ready else found
