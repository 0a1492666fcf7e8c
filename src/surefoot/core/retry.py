"""Whether a failed attempt is tried again, and what an exception of an effect proves.

Only arithmetic and judgement on values here; waiting and recording is done elsewhere.
"""

from __future__ import annotations

from subprocess import TimeoutExpired
from typing import Final

from msgspec import Struct

from surefoot.core.timer import Duration, seconds
from surefoot.errors import Fatal, NotDone, RetryAfter, UsageError

RATE_LIMIT_RETRIES: Final = 5
"""How often `RetryAfter` is honoured where `retries=` says nothing."""
DOUBT_RETRIES: Final = 3
"""How often an effect that is safe to retry is tried again after doubt where `retries=` says nothing."""
UNSURE: Final = (TimeoutError, ConnectionError, TimeoutExpired)
"""Exceptions after which nobody can know whether an effect happened; also as one of a group."""


class Backoff:
    """How long to wait between attempts: `first`, then `factor` times longer, at most `max`."""

    __slots__ = ("factor", "first", "jitter", "max")

    def __init__(self, first: Duration = "1s", factor: float = 2, max: Duration = "1m", *, jitter: bool = True) -> None:  # noqa: A002 - public name
        if not factor >= 1:
            raise UsageError(f"Backoff(factor={factor!r}): must be at least 1")
        self.first = seconds(first)
        self.factor = float(factor)
        self.max = seconds(max)
        self.jitter = jitter

    def delay(self, attempt: int) -> float:
        """Seconds to wait after that many attempts, before jitter."""
        return min(self.max, self.first * self.factor ** min(attempt - 1, 64))

    def __repr__(self) -> str:
        return f"Backoff(first={self.first}, factor={self.factor}, max={self.max}, jitter={self.jitter})"


class RetryPolicy(Struct, frozen=True):
    retries: int | None = None
    backoff: Backoff = Backoff()
    retry_on: tuple[type[BaseException], ...] | None = None
    """None: not given."""


class Wait(Struct, frozen=True):
    """Try again after so many seconds; jitter only where the user did not name the time."""

    seconds: float
    jitter: bool


def next_try(policy: RetryPolicy, error: BaseException, attempt: int, *, harmless: bool) -> Wait | None:
    """How long to wait before the next attempt after this failure; None: there is no next one.

    `harmless`: repeating the call can do no damage, so any exception may be tried again.
    """
    if isinstance(error, Fatal):
        return None
    if isinstance(error, RetryAfter):
        allowed = RATE_LIMIT_RETRIES if policy.retries is None else policy.retries
        return Wait(error.seconds, False) if attempt <= allowed else None
    if attempt > (policy.retries or 0) or not _retryable(policy, error, harmless=harmless):
        return None
    return Wait(policy.backoff.delay(attempt), policy.backoff.jitter)


def _retryable(policy: RetryPolicy, error: BaseException, *, harmless: bool) -> bool:
    if policy.retry_on is not None and isinstance(error, policy.retry_on):
        return True
    return isinstance(error, NotDone) or (harmless and policy.retry_on is None)


def after_doubt(policy: RetryPolicy, attempt: int) -> Wait | None:
    """The next try of an effect whose last attempt is in doubt and that is safe to retry."""
    allowed = DOUBT_RETRIES if policy.retries is None else policy.retries
    return Wait(policy.backoff.delay(attempt), policy.backoff.jitter) if attempt <= allowed else None


def proves_nothing_happened(error: BaseException, policy: RetryPolicy, unsure: tuple[type[BaseException], ...]) -> bool:
    """Whether an exception of an effect lets it count as failed. If not, the effect is in doubt."""
    if isinstance(error, Fatal | NotDone):
        return True
    if policy.retry_on is not None and isinstance(error, policy.retry_on):
        return True
    if isinstance(error, UNSURE + unsure):
        return False
    if isinstance(error, BaseExceptionGroup):
        return all(proves_nothing_happened(one, policy, unsure) for one in error.exceptions)
    return isinstance(error, Exception)
