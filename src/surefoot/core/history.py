"""What earlier processes recorded about each call, and whether the code still asks for the same.

A recorded value is only ever given to the call it was recorded for: same address, same kind of call,
same arguments. Anything else is `CodeChanged`, with both sides shown.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Raw, Struct

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


class Past(Struct, frozen=True, gc=False):
    """One recorded call, folded from its entries. A value: a further entry makes another one (`replace`)."""

    address: str
    kind: str
    """`step`, `effect`, `value`, `timer`, `wait`, `question`, `sight`, `saga` or `note`."""
    state: PastState
    at: int
    """When it started, microseconds since 1970."""
    digest: str = ""
    args: Value | None = None
    defaults: Value | None = None
    """Of an effect: what the parameters that were not passed had as defaults."""
    value: Value | None = None
    error: Raw | None = None
    attempt: int = 0
    failures: int = 0
    """How many attempts of an effect ended, as against being cut off: only those use up its retries."""
    parked: bool = False
    """It waits because what it needs is away (`sf.Unavailable`)."""
    parks: int = 0
    """How many attempts ended so: they use up no retries."""
    due: Due | None = None
    deadline: Due | None = None
    """Of an effect: when its attempt has used up its time."""
    lands: Due | None = None
    """Of an effect: until when its attempt may still be on its way, if it was cut off."""
    marked: str = ""
    """Of an effect: the database in which every attempt that may have happened has left its marker; empty: none has to."""
    origin: str = ""
    """Of an effect: where it was defined, unless its name says that (`EffectIntended.origin`)."""
    taken_from: RunAdopted | None = None
    """Of an effect in doubt: the claimant that began it, if others took the run from it without a word of its own."""
    landed: EffectLandedLate | None = None
    """Of an effect in doubt: the word of a process which had lost its claim by then that it executed this attempt."""
    runs_in: str = ""
    """Of an effect in doubt: the worker in whose process its last attempt may still be running."""
    ended: int = 0
    seconds: float = 0.0
    """Of a saga: how long the code had been running when the saga was cancelled."""
    key: str = ""
    expires: Due | None = None
    """Until when a retry under its key is safe."""
    policy: str = ""
    name: str = ""
    why: str = ""
    learned_by: str = ""
    """Who told what became of it, where that is not the call itself: `person ann`, `check`."""
    cleared_by: str = ""
    """Who said, before its last attempt, that it had not happened."""
    claimant: str = ""
    """Who made it; of an effect, who began its last attempt, whoever recorded what became of that."""
    epoch: int = 0
    seq: int = 0
    """Its newest entry."""
    first: int = 0
    """Its first entry."""
    rewound: bool = False
    """An effect that was executed before a person sent the run back to before it: in doubt, with the same key."""
    executed_with: str = ""
    """Of an effect that was rewound, or is tried again: the digest of the arguments it was executed with."""
    spent: str = ""
    """Of a rewound effect: how what it did was reversed since, in words. Under its key it would not be done again."""
    before: Value | None = None
    """Of a rewound effect: what it had noted as being there before it (`X.before#1` belongs to `X#1`)."""
    gave_up: bool = False
    """An effect that failed because it was in doubt (`on_crash="fail"`): it may have happened all the same."""
    reopened: bool = False
    """An effect that failed, and that a person has tried again (`runs retry`): cleared, or in doubt if it gave up."""
    form: str = ""
    """Of a question: `approve` or `ask`."""
    shown: str = ""
    """Of a question: the digest of what is shown, to which an answer is bound."""
    answerers: tuple[str, ...] = ()
    schema: str = ""
    question: str = ""
    suspected: bool = False
    """In doubt only because its record may be among entries that were lost."""
    unproven: bool = False
    """An earlier attempt may have happened; a later one that certainly did nothing does not change that."""
    outcome_lost: bool = False
    """In doubt, and entries that were recorded after it are lost."""
    visited: int = 0
    """Of an effect: the entry in which somebody else last changed how it stands."""
    asked_as: int = 0
    """Of a step: the number that the code asked for it by, if its address has another one."""
    kept: str = ""
    """The digest of other arguments with which it was asked for since, and what it gave was kept."""

    @property
    def is_limit(self) -> bool:
        """The deadline of a block (`sf.timeout`) that has not ended."""
        name = self.address.rpartition("/")[2].partition("#")[0]
        return self.kind == "timer" and self.state is PastState.OPEN and name == "timeout"
