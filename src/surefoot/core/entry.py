"""The facts a journal is made of: a closed set, one class each, numbered for ever.

A number in KINDS is never reused and a field is never given another meaning; a new meaning is a new
kind or a higher SCHEMA. When a fact was recorded, by which claimant and at which position is not
here: every record carries that in its sealed header (`seal.py`).

Values of user code ride along as `Raw`: encoded once, decoded only when replay asks for them.
"""

from __future__ import annotations

from typing import Final

from msgspec import Raw, Struct

NOTHING: Final = Raw(b"null")


class Due(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A moment to wait for. Within one boot the boot clock decides, else the wall clock."""

    at: int
    """Wall clock, microseconds since 1970."""
    boot: str = ""
    """Which boot of which machine `boot_at` belongs to; empty: wall clock only."""
    boot_at: int = 0
    """Boot clock, microseconds."""


class Stop(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Why a run stands still, as recorded: the name of an error of the `Stopped` family, and its facts."""

    reason: str
    message: str
    address: str = ""
    facts: dict[str, str] = {}
    cures: tuple[tuple[str, str], ...] = ()


class Entry(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A recorded fact about a run."""


# --- the life of a run ---------------------------------------------------------------------------


class RunCreated(Entry, frozen=True):
    workflow: str
    args: Raw
    digest: str
    version: int = 1
    namespace: str = ""
    queue: str = ""
    labels: dict[str, str] = {}
    due: Due | None = None


class RunAdopted(Entry, frozen=True):
    """A process claims the run. The record's epoch is one higher than any before it."""

    worker: str
    host: str
    pid: int
    claim: str
    """Random, so that a claim whose acknowledgement was lost can be told from somebody else's."""


class RunReleased(Entry, frozen=True):
    """The claimant lets go without having finished: interrupted, or a fault in the calling code."""

    why: str


class RunStopped(Entry, frozen=True):
    stops: tuple[Stop, ...]


class RunDone(Entry, frozen=True):
    value: Raw


class RunFailed(Entry, frozen=True):
    error: Raw


class CancelRequested(Entry, frozen=True):
    by: str
    note: str = ""


class RunCancelled(Entry, frozen=True):
    pass


class RunContinued(Entry, frozen=True):
    """One segment ended and the next began, in one append. Recorded calls count per segment."""

    args: Raw
    digest: str


class CallsUnclaimed(Entry, frozen=True):
    """Recorded steps that the code no longer asks for: allowed, but worth knowing."""

    addresses: tuple[str, ...]


# --- calls ---------------------------------------------------------------------------------------


class StepStarted(Entry, frozen=True):
    """Lazy: written only if something else is committed, or a second passes, while the step runs."""

    address: str
    digest: str
    args: Raw
    attempt: int = 1


class StepDone(Entry, frozen=True):
    address: str
    digest: str
    args: Raw
    value: Raw
    started: int
    attempt: int = 1


class StepRaised(Entry, frozen=True):
    """An attempt failed. Without `due` there is no further attempt: the step failed for good."""

    address: str
    digest: str
    args: Raw
    error: Raw
    attempt: int = 1
    due: Due | None = None


class EffectIntended(Entry, frozen=True):
    """Durable before the call: if the process dies now, the effect is known to be in doubt."""

    address: str
    digest: str
    args: Raw
    key: str
    policy: str
    attempt: int = 1
    deadline: Due | None = None
    before: dict[str, str] = {}


class EffectDone(Entry, frozen=True):
    address: str
    value: Raw
    attempt: int = 1
    witnesses: dict[str, str] = {}


class EffectRaised(Entry, frozen=True):
    """The attempt failed and that proves nothing happened. Without `due`: failed for good."""

    address: str
    error: Raw
    attempt: int = 1
    due: Due | None = None


class EffectDoubted(Entry, frozen=True):
    """The attempt ended in a way that proves nothing (a time-out, a lost connection)."""

    address: str
    error: Raw
    attempt: int = 1


class EffectUnstorable(Entry, frozen=True):
    """The effect happened, but its result cannot be stored. It is never run again."""

    address: str
    why: str
    attempt: int = 1


class EffectSettled(Entry, frozen=True):
    """An answer to an in-doubt effect, used once: it answers the attempt it names."""

    address: str
    happened: bool
    attempt: int
    value: Raw = NOTHING
    learned_by: str = "person"
    by: str = ""
    note: str = ""


# --- recorded values, time, waiting ---------------------------------------------------------------


class ValueNoted(Entry, frozen=True):
    """What now, random, uuid4 or patched gave. Lazy."""

    address: str
    value: Raw


class Progressed(Entry, frozen=True):
    address: str
    done: float
    total: float | None = None
    note: str = ""


class Published(Entry, frozen=True):
    address: str
    name: str
    value: Raw


class TimerSet(Entry, frozen=True):
    address: str
    due: Due


class TimerFired(Entry, frozen=True):
    address: str


class WaitStarted(Entry, frozen=True):
    address: str
    name: str
    due: Due | None = None


class EventSent(Entry, frozen=True):
    """`id` makes sending idempotent: a second event with the same id is the same event."""

    name: str
    value: Raw
    id: str
    by: str = ""


class EventTaken(Entry, frozen=True):
    address: str
    id: str


class WaitExpired(Entry, frozen=True):
    address: str


KINDS: Final[dict[int, type[Entry]]] = {
    1: RunCreated,
    2: RunAdopted,
    3: RunReleased,
    4: RunStopped,
    5: RunDone,
    6: RunFailed,
    7: CancelRequested,
    8: RunCancelled,
    9: RunContinued,
    10: CallsUnclaimed,
    20: StepStarted,
    21: StepDone,
    22: StepRaised,
    23: EffectIntended,
    24: EffectDone,
    25: EffectRaised,
    26: EffectDoubted,
    27: EffectSettled,
    28: EffectUnstorable,
    40: ValueNoted,
    41: Progressed,
    42: Published,
    43: TimerSet,
    44: TimerFired,
    45: WaitStarted,
    46: EventSent,
    47: EventTaken,
    48: WaitExpired,
}

KIND_OF: Final[dict[type[Entry], int]] = {cls: number for number, cls in KINDS.items()}

VISITORS: Final = frozenset({CancelRequested, EffectSettled, EventSent})
"""Entries that somebody other than the claimant may write into a run. A closed set."""
