"""The closed list of wishes a program may yield, and what it gets back.

Programs decide; they never touch a clock, a store or the user's function. A driver performs each wish
and sends the answer back in. Failures of user code come back as values, never thrown in, so a program
can be read from top to bottom.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from msgspec import Raw, Struct

from surefoot.core.entry import Due, Entry, Sight, Stop, Value


class Append(Struct, frozen=True):
    """Make this entry durable. Everything lazy that came before it goes first."""

    entry: Entry


class Execute(Struct, frozen=True):
    """Call the user's function. Answer: an Outcome."""

    attempt: int


class After(Struct, frozen=True):
    """Which moment is so many seconds from now? Answer: a Due."""

    seconds: float
    jitter: bool = False


class Pause(Struct, frozen=True):
    """Wait until then."""

    due: Due
    why: str = ""
    """For people, where the wait is not one they asked for."""


class Look(Struct, frozen=True):
    """Have the effect's check look at the world; it changes nothing. Answer: a Verdict, its value encoded."""


class Trace(Struct, frozen=True):
    """Can the process that began the last attempt still be in it? Answer: a Fate (`programs/landing.py`)."""


class Repair(Struct, frozen=True):
    """Have the undo of this effect take back what it did in part. Answer: an Ending."""

    attempt: int


class Observe(Struct, frozen=True):
    """What does the effect touch, and how is it now? Answer: a tuple of Sights, and what could not be observed."""


class Hold(Struct, frozen=True):
    """Hold what the effect is about to touch against what the run expects. Answer: the Stop if it is something else;
    True if the run has changed its own world meanwhile, so that one has to look again; else None.
    """

    sights: tuple[Sight, ...]


class Left(Struct, frozen=True):
    """How did the effect leave what it touches? Answer: Sights as it left them; and as they are found, where somebody
    else has changed that since.
    """


class Verify(Struct, frozen=True):
    """Is the world as the run expects it? Answer: the Stop if it is not, else None."""


Wish = Append | Execute | After | Pause | Look | Trace | Repair | Observe | Hold | Left | Verify


class Returned(Struct, frozen=True):
    raw: Raw
    started: int


class Raised(Struct, frozen=True):
    error: BaseException
    raw: Raw
    runs_in: str = ""
    """The worker in whose process the call goes on all the same, after its time was over."""
    proven: bool = False
    """It comes from a guard clause, or from a transaction that was rolled back: nothing was done."""


class Unstorable(Struct, frozen=True):
    """The function returned something that cannot be recorded."""

    why: str


Outcome = Returned | Raised | Unstorable


class Done(Struct, frozen=True):
    raw: Value


class Failed(Struct, frozen=True):
    raw: Raw
    cause: BaseException | None = None


class Halted(Struct, frozen=True):
    """The call cannot go on without a person."""

    stop: Stop


class CalledOff(Struct, frozen=True):
    """The run was cancelled: the call is not made (again)."""


Ending = Done | Failed | Halted | CalledOff
Program = Generator[Wish, Any, Ending]
