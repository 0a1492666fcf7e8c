"""The only place that reads the time and the randomness on which runs depend. Code that needs them is given a Clock."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from typing import Protocol

from surefoot.core.timer import Moment

LOOK_SECONDS = 0.25
"""How often a sleeping run checks for a cancellation or an answer."""


class Clock(Protocol):
    def read(self) -> Moment: ...

    def now(self) -> int:
        """Wall clock, microseconds since 1970."""

    def random(self) -> float: ...

    def uuid4(self) -> uuid.UUID: ...

    def nap(self, left: float) -> float:
        """How many seconds to really wait before looking again, when `left` seconds are left."""


class SystemClock:
    """The clocks of this machine."""

    def __init__(self) -> None:
        self._boot = _boot_id()

    def read(self) -> Moment:
        return Moment(self.now(), self._boot, _boot_micros())

    def now(self) -> int:
        return time.time_ns() // 1000

    def random(self) -> float:
        return random.random()  # noqa: S311 - recorded luck for workflows, not a secret

    def uuid4(self) -> uuid.UUID:
        return uuid.uuid4()

    def nap(self, left: float) -> float:
        return min(left, LOOK_SECONDS)


class StoreClock(SystemClock):
    """The clock of a store that many machines share: timers and entries use it, not this machine's clock."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self._now = now

    def read(self) -> Moment:
        return Moment(self._now(), "", 0)

    def now(self) -> int:
        return self._now()


def _boot_id() -> str:
    """The id of this boot; empty if the system has none: then only the wall clock is used."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _boot_micros() -> int:
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1000
