"""Parking: something that a call or a workflow needs is away (`sf.Unavailable`), so the run waits. No attempt failed.

Without a given time, the next try is after a minute, then after twice as long each time, at most a quarter of an hour.
The number of times that a call was parked is on record, so a crash does not restart the count.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from surefoot.core import values
from surefoot.core.history import PastCall, PastState
from surefoot.core.state import RunState
from surefoot.core.timer import seconds
from surefoot.errors import Unavailable, UsageError

FIRST_SECONDS: Final = 60.0
LONGEST_SECONDS: Final = 900.0
FOR_EVER_SECONDS: Final = 3.1e9


def unavailable(error: BaseException | None) -> Unavailable | None:
    """The exception that reports something away, if nothing else is wrong. A group counts if all its members do."""
    if isinstance(error, BaseExceptionGroup):
        found = [unavailable(one) for one in error.exceptions]
        return None if None in found else max(filter(None, found), key=lambda one: seconds_until(one, 1))
    return error if isinstance(error, Unavailable) else None


def seconds_until(away: Unavailable, time: int) -> float:
    """How long to wait when something was away for the first time, the second time …"""
    if away.retry_after is None:
        return min(FIRST_SECONDS * 2.0 ** min(time - 1, 10), LONGEST_SECONDS)
    with suppress(UsageError):
        return seconds(away.retry_after)
    return FOR_EVER_SECONDS


def told(address: str, why: object) -> str:
    return f"{address} is parked: {why}"


def recorded(past: PastCall) -> str:
    """Why a call waits, if it waits because something is away."""
    if not past.parked or past.error is None:
        return ""
    return told(past.address, values.error_summary(past.error)[1])


def why_parked(state: RunState) -> str:
    """What is away, in words; empty: the run is not parked."""
    if state.parked and state.due is not None:
        return state.parked
    calls = (past for past in state.calls.values() if isinstance(past, PastCall) and past.parked)
    first = next((past for past in calls if past.state is PastState.RETRYING), None)
    return "" if first is None or first.error is None else values.error_summary(first.error)[1]
