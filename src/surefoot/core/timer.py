"""When to wake up, as arithmetic on readings of the clocks.

Within one boot the boot clock decides, so a wrong or moved wall clock makes no timer early or late.
Only after a restart of the machine, or on another one, does the wall clock have to be believed.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from msgspec import Struct

from surefoot.core.entry import Due
from surefoot.errors import DURATION, UsageError

MICROS: Final = 1_000_000
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PIECE: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")

Duration = str | int | float | timedelta
"""`"90s"`, `"1h30m"`, a number of seconds, or a timedelta."""


class Moment(Struct, frozen=True):
    """One reading of all clocks, microseconds."""

    wall: int
    boot: str
    boot_at: int


def seconds(duration: Duration) -> float:
    """A duration as users write it, in seconds."""
    if isinstance(duration, timedelta):
        value = duration.total_seconds()
    elif isinstance(duration, bool) or not isinstance(duration, str | int | float):
        raise UsageError(f"not a duration: {duration!r}. Write seconds as a number, '90s', '1h30m' or a timedelta.")
    elif isinstance(duration, str):
        if not DURATION.fullmatch(duration):
            raise UsageError(f"not a duration: {duration!r}. Write '500ms', '90s', '5m', '3h', '1h30m' or '2d'.")
        value = sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(duration))
    else:
        value = float(duration)
    if not 0 <= value < 3.2e9:
        raise UsageError(f"a duration must be between zero and a hundred years: {duration!r}")
    return value


def after(now: Moment, wait_seconds: float) -> Due:
    micros = round(wait_seconds * MICROS)
    return Due(now.wall + micros, now.boot, now.boot_at + micros)


def later(due: Due, by_seconds: float) -> Due:
    """That moment put off."""
    micros = round(by_seconds * MICROS)
    return Due(due.at + micros, due.boot, due.boot_at + micros if due.boot else 0)


def until(now: Moment, wall: int) -> Due:
    """A moment given by the wall clock (`sleep_until`)."""
    return Due(wall, now.boot, now.boot_at + wall - now.wall)


def remaining(due: Due, now: Moment) -> float:
    """Seconds left; zero or less when the moment has come."""
    if due.boot and due.boot == now.boot:
        return (due.boot_at - now.boot_at) / MICROS
    return (due.at - now.wall) / MICROS
