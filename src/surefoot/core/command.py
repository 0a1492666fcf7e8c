"""The closed list of wishes a program may yield, and what it gets back.

Programs decide; they never touch a clock, a store or the user's function. A performer performs each wish
and sends the answer back in: `perform.py` in blocking code, `perform_async.py` in tasks. Failures of user code come
back as values, so that a program can be read from top to bottom. What keeps a wish from being performed (the store
is away, Ctrl-C) is thrown in, so that the holder of a claim can release it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from msgspec import Raw, Struct

from surefoot.core.entry import Due, Entry, RunCreated, Sight, Stop, Value

T = TypeVar("T")


# -- wishes of calls, most frequent first ----------------------------------------------------------------


class Append(Struct, frozen=True):
    """Make this entry durable. Everything lazy that came before it goes first."""

    entry: Entry


class Execute(Struct, frozen=True):
    """Call the user's function. Answer: an Outcome."""

    attempt: int


class After(Struct, frozen=True):
    """Which moment is that many seconds from now? Answer: a Due."""

    seconds: float
    jitter: bool = False


class Pause(Struct, frozen=True):
    """Wait until that moment."""

    due: Due
    why: str = ""
    """The reason for people, where the code did not ask for the wait."""


class RunCheck(Struct, frozen=True):
    """Have the effect's check look at the world; it changes nothing. Answer: a Verdict, its value encoded."""


class Trace(Struct, frozen=True):
    """Can the process that began the last attempt still be in it? Answer: a Fate (`programs/landing.py`)."""


class Repair(Struct, frozen=True):
    """Have the undo of this effect take back what it did in part. Answer: an Ending."""

    attempt: int


class Observe(Struct, frozen=True):
    """What does the effect touch, and what is its state now? Answer: a tuple of Sights, and what was unobservable."""


class Hold(Struct, frozen=True):
    """Compare what the effect is about to touch with what the run expects. Answer: the Stop if they differ; True if the
    run itself has changed its world meanwhile, so that one has to look again; else None.
    """

    sights: tuple[Sight, ...]


class Left(Struct, frozen=True):
    """How did the effect leave what it touches? Answer: Sights as the effect left them; and as they are found now,
    where others have changed them since.
    """


class Verify(Struct, frozen=True):
    """Is the world as the run expects it? Answer: the Stop if it is not, else None."""


# -- wishes of starts and verbs --------------------------------------------------------------------------


class Do(Struct, frozen=True):
    """I/O of our own, which blocks. Answer: its result."""

    fn: Callable[[], Any]


class Make(Struct, frozen=True):
    """Make a call of a decorated function, as the run's code would. Answer: the result of the call."""

    spec: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Nap(Struct, frozen=True):
    """Wait that long, whatever happens meanwhile."""

    seconds: float


class Claim(Struct, frozen=True):
    """Take the run over, or create it. Answer: `Claimed`, or why not (`core/claim.py`)."""

    created: RunCreated | None = None


class Invoke(Struct, frozen=True):
    """Call the workflow's function, for this session. Answer: what it Returned, or the exception that it ended with."""

    session: Any
    fn: Callable[[], Any]


class Within(Struct, frozen=True):
    """Perform this program for that frame (`engine/session/frame.py`). Answer: what it returns."""

    frame: Any
    program: Generator[Any, Any, Any]


Looking = RunCheck | Trace | Repair | Observe | Hold | Left | Verify
Idle = RunCheck | Trace | Pause | After
"""Wishes that change nothing."""
Doing = Do | Make | Nap | Claim | Invoke | Within
Wish = Append | Execute | After | Pause | Looking | Doing
Routine = Generator[Wish, Any, T]
"""A program that returns anything."""


class Returned(Struct, frozen=True):
    raw: Raw
    started: int


class Raised(Struct, frozen=True):
    error: BaseException
    raw: Raw
    runs_in: str = ""
    """The worker in whose process the call still runs, although its time is over."""
    proven: bool = False
    """It comes from a guard clause, or from a transaction that was rolled back: nothing was done."""
    started: int = 0
    """When the attempt began, microseconds since 1970; 0: not known."""


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
