"""Whether a failed attempt is tried again. Only arithmetic; waiting and recording is done elsewhere.

An effect asks here only about an attempt that certainly did nothing, or that is safe to repeat.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from surefoot.core.timer import Duration, seconds
from surefoot.errors import Fatal, NotDone, RetryAfter, UsageError

RATE_LIMIT_RETRIES: Final = 5
"""How often `RetryAfter` is honoured where `retries=` is not given."""
DOUBT_RETRIES: Final = 3
"""How often an effect that is safe to retry is tried again after doubt where `retries=` is not given."""


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
    """Of a step: only these are retried. None: not given."""


class Wait(Struct, frozen=True):
    """Try again after so many seconds; jitter only where the user did not set the time."""

    seconds: float
    jitter: bool


def next_try(policy: RetryPolicy, error: BaseException, attempt: int) -> Wait | None:
    """How long to wait before the next attempt after this failure, which is safe to repeat; None: there is no next one."""
    if isinstance(error, Fatal):
        return None
    if isinstance(error, RetryAfter):
        allowed = RATE_LIMIT_RETRIES if policy.retries is None else policy.retries
        return Wait(error.seconds, False) if attempt <= allowed else None
    retryable = policy.retry_on is None or isinstance(error, (NotDone, *policy.retry_on))
    if attempt > (policy.retries or 0) or not retryable:
        return None
    return Wait(policy.backoff.delay(attempt), policy.backoff.jitter)


def after_doubt(policy: RetryPolicy, attempt: int) -> Wait | None:
    """The next try of an effect whose last attempt is in doubt and that is safe to retry."""
    allowed = DOUBT_RETRIES if policy.retries is None else policy.retries
    return Wait(policy.backoff.delay(attempt), policy.backoff.jitter) if attempt <= allowed else None
