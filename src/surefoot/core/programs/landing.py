"""When a check's "not happened" is believed: once nothing that was begun can still be on its way.

What a dead process has started lives on without it: a request that the other side is still working on, a program. And a
process that is silent need not be dead. So a check that finds nothing is asked again when the time is over in which the
call may still land; only what it says then counts. "Happened" is believed at once.

The time and the death are looked at *before* the check looks: what lands in between, it sees.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from msgspec import Struct

from surefoot.core.command import After, Pause, RunCheck, Trace, Wish
from surefoot.core.entry import Due
from surefoot.core.history import PastEffect
from surefoot.core.timer import MICROS, Moment, later, remaining
from surefoot.core.verdict import NotHappened, Partial, Unknown, Verdict


class Fate(Struct, frozen=True):
    """What is known of the process that began a call, as far as it may be in the call still."""

    lives: bool = False
    unproven: bool = False
    """It is silent, and nothing proves that it is dead."""
    told: str = ""
    """Who it is, in words."""


GONE: Final = Fate()
"""Nothing of it runs any more."""


class Landing(Struct, frozen=True):
    """How long the last attempt of an effect may still be on its way."""

    address: str
    due: Due | None = None
    timed: bool = False
    """Whether that is the call's own `timeout=`, which bounds also a process that is only silent."""
    elsewhere: bool = False
    """Whether another process began it."""
    landed: bool = False
    """Whether that process has said that it executed it."""
    unmarked: str = ""
    """Of a transaction: why it may have happened although its marker is missing."""

    @classmethod
    def of(cls, past: PastEffect, in_flight: float, *, lingers: bool = False) -> Landing:
        """Of what an earlier process left behind. What says by now that nothing can be on its way is believed."""
        due = past.deadline
        if in_flight > 0:
            due = past.lands or due
            if past.lands is None and due is not None and lingers:  # begun by code that did not say so
                due = later(due, in_flight)
            elif due is None and past.at and not past.rewound:  # begun by code that did not say
                due = Due(past.at + round(in_flight * MICROS))
        return cls(past.address, due, past.deadline is not None, elsewhere=True, landed=past.landed is not None)

    def looked(self, *, patient: bool = True) -> Generator[Wish, Any, Verdict]:
        """What the check says, as far as it can be believed. Impatient: without waiting for it."""
        while True:
            fate: Fate = (yield Trace()) if self.elsewhere else GONE
            is_early = self.due is not None and not (yield from _is_over(self.due))
            verdict: Verdict = yield RunCheck()
            if not isinstance(verdict, NotHappened | Partial):
                return verdict
            if self.unmarked:
                return Unknown(self.unmarked)
            if self.landed:
                return Unknown("it does not find it, though the process that began it says that it executed it")
            if fate.lives:
                return Unknown(f"the call may still be running in {fate.told}")
            if fate.unproven and not self.timed:
                return Unknown(
                    f"it does not find it, but the call may still be running in {fate.told}; without timeout= nobody "
                    "knows for how long"
                )
            if not is_early or self.due is None:
                return verdict
            if not patient:
                return Unknown("the call may still be on its way")
            yield Pause(self.due, f"{self.address}: its check does not find it, but it may still be on its way")


def _is_over(due: Due) -> Generator[Wish, Any, bool]:
    now: Due = yield After(0.0)
    return remaining(due, Moment(now.at, now.boot, now.boot_at)) <= 0
