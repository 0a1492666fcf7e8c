"""The past of each call: what the journal says about it, folded from its entries.

Every kind of call has a class with the fields that such a call can have. `core/state.py` makes them, and a further
entry makes another value (`replace`). Which recorded call the code means is decided in `core/matching`.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, Final

from msgspec import Raw, Struct

from surefoot.core.address import split
from surefoot.core.entry import Due, EffectLandedLate, RunAdopted, Value


class PastState(Enum):
    STARTED = "started"
    """A step that was cut off, or is running now."""
    RETRYING = "retrying"
    IN_DOUBT = "in doubt"
    CLEARED = "cleared"
    """In doubt once, then settled as not happened: it may run again, with the same key."""
    UNSTORABLE = "unstorable"
    OPEN = "open"
    """A timer that has not fired, a wait that has not ended."""
    DONE = "done"
    FAILED = "failed"


CHILD: Final = "child"
DOUBTFUL: Final = (PastState.IN_DOUBT, PastState.UNSTORABLE)


class Past(Struct, frozen=True, gc=False):
    """What calls of every kind have on record."""

    kind: ClassVar[str]
    address: str
    state: PastState
    at: int
    """When it started, microseconds since 1970."""
    args: Value | None = None
    """The arguments of the call; of a question, what is shown."""
    value: Value | None = None
    """The result …"""
    error: Raw | None = None
    """… or raised."""
    claimant: str = ""
    """Who made it; of an effect, the process that began its last attempt, even if another one recorded the outcome."""
    epoch: int = 0
    seq: int = 0
    """Its newest entry."""
    first: int = 0
    """Its first entry."""
    ended: int = 0
    why: str = ""
    """For people: why it is in this state."""
    kept: str = ""
    """The digest of other arguments with which the code asked for it later; the recorded result was kept."""


class PastCall(Past, frozen=True, gc=False):
    """A function of the user's: a step or an effect."""

    digest: str = ""
    """Of its arguments."""
    attempt: int = 0
    parked: bool = False
    """It waits because what it needs is away (`sf.Unavailable`)."""
    parks: int = 0
    """How many attempts ended like this: they use up no retries."""
    due: Due | None = None
    """When it is tried again."""

    @property
    def made_with(self) -> str:
        """The digest of the arguments it was last executed with."""
        return self.digest


class PastStep(PastCall, frozen=True, gc=False):
    kind = "step"
    asked_as: int = 0
    """The number under which the code asked for it, if its address has another one."""


class PastEffect(PastCall, frozen=True, gc=False):
    kind = "effect"
    defaults: Value | None = None
    """The defaults of the parameters that were not passed."""
    failures: int = 0
    """How many attempts ended and were not cut off: only those use up its retries."""
    key: str = ""
    expires: Due | None = None
    """Until when a retry under its key is safe."""
    policy: str = ""
    deadline: Due | None = None
    """When its attempt has used up its time."""
    lands: Due | None = None
    """Until when its attempt may still be on its way, if it was cut off."""
    marked: str = ""
    """The database with a marker of every attempt that may have happened; empty: no marker is required."""
    origin: str = ""
    """Where it was defined, unless its name says that (`EffectIntended.origin`)."""
    learned_by: str = ""
    """The source of the outcome, if that is not the call itself: `person ann`, `check`."""
    cleared_by: str = ""
    """The source that settled it as not happened before its last attempt."""
    visited: int = 0
    """The entry in which a visitor last changed its state."""
    taken_from: RunAdopted | None = None
    """In doubt: the claimant that began it, if the run was taken from that claimant before it released the run."""
    landed: EffectLandedLate | None = None
    """In doubt: a process that had lost its claim reported that it executed this attempt."""
    runs_in: str = ""
    """In doubt: the worker in whose process its last attempt may still be running."""
    suspected: bool = False
    """In doubt only because its record may be among entries that were lost."""
    outcome_lost: bool = False
    """In doubt, and entries that were recorded after it are lost."""
    unproven: bool = False
    """An earlier attempt may have happened; a later one that certainly did nothing does not change that."""
    gave_up: bool = False
    """It failed because it was in doubt (`on_crash="fail"`): it may have happened all the same."""
    reopened: bool = False
    """It failed, and a person requested another try (`runs retry`): cleared, or in doubt if it gave up."""
    rewound: bool = False
    """It was executed before a person rewound the run to before it: in doubt, with the same key."""
    executed_with: str = ""
    """Rewound, or tried again: the digest of the arguments it was executed with."""
    spent: str = ""
    """Rewound: how its effect was reversed later, in words. Under its key it would not be done again."""
    before: Value | None = None
    """Rewound: what was noted as there before it (`X.before#1` belongs to `X#1`)."""

    @property
    def made_with(self) -> str:
        return self.digest or self.executed_with

    @property
    def may_have_happened(self) -> bool:
        """Includes an effect that failed only because its outcome was unknown (`on_crash="fail"`)."""
        return self.gave_up if self.state is PastState.FAILED else self.state in _HAPPENED


_HAPPENED: Final = (PastState.DONE, *DOUBTFUL)


class PastQuestion(Past, frozen=True, gc=False):
    kind = "question"
    due: Due | None = None
    form: str = ""
    """`approve` or `ask`."""
    shown: str = ""
    """The digest of what is shown, to which an answer is bound."""
    answerers: tuple[str, ...] = ()
    schema: str = ""
    question: str = ""
    learned_by: str = ""
    """Who answered."""


class PastTimer(Past, frozen=True, gc=False):
    kind = "timer"
    due: Due | None = None

    @property
    def is_limit(self) -> bool:
        """The deadline of a block (`sf.timeout`) that has not ended."""
        return self.state is PastState.OPEN and split(self.address)[1] == "timeout"


class PastWait(Past, frozen=True, gc=False):
    kind = "wait"
    name: str = ""
    """Of the event."""
    due: Due | None = None


class PastSaga(Past, frozen=True, gc=False):
    """One that was cancelled."""

    kind = "saga"
    seconds: float = 0.0
    """How long the code had been running by then."""


class PastValue(Past, frozen=True, gc=False):
    """`sf.now`, `sf.uuid4` and the like."""

    kind = "value"


class PastSight(Past, frozen=True, gc=False):
    """`sf.watch`."""

    kind = "sight"


class PastNote(Past, frozen=True, gc=False):
    """`sf.progress` and `sf.publish`, which return nothing."""

    kind = "note"


def is_child(past: Past) -> bool:
    """Whether it is a child run: recorded as a step of that name."""
    # The search for the name decides for nearly every step: splitting all addresses of a long run costs more.
    return isinstance(past, PastStep) and CHILD in past.address and split(past.address)[1] == CHILD


def may_have_happened(past: Past) -> bool:
    """Whether an effect or a child run, or a part of it, may have happened."""
    return past.may_have_happened if isinstance(past, PastEffect) else is_child(past)


def is_rewound(past: Past) -> bool:
    return isinstance(past, PastEffect) and past.rewound
