"""A service that is away for a moment, or for an hour: asked again a few times, and then the run is parked, not failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import surefoot.aio as sf

ATTEMPTS: Final = 5
"""After so many the run is parked, and then there are as many again."""
LONGEST_SECONDS: Final = 60.0
_BUSY: Final = frozenset({408, 409, 425, 429})
_LOST: Final = frozenset(
    {
        "APIConnectionError", "APITimeoutError", "TransportError", "ConnectionError", "ClientConnectionError",
        "ModelConnectionError", "ModelRateLimitError", "ModelRequestTimeout", "ModelServerError", "ModelUnavailableError",
    }
)  # fmt: skip


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """In a step that only asks: what says "later" is tried again."""
    try:
        yield
    except Exception as error:
        if not is_passing(error):
            raise
        told = f"{what} is not available: {type(error).__name__}: {error}"
        number = sf.attempt()
        if number % ATTEMPTS == 0:
            raise sf.Unavailable(told, asked_to_wait(error)) from error
        raise sf.RetryAfter(
            asked_to_wait(error) or min(2.0 ** (number % ATTEMPTS - 1), LONGEST_SECONDS), told
        ) from error


def is_passing(error: BaseException) -> bool:
    """Whether the same request may be answered later: the client's classes are known by name, nothing is imported."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_passing(each) for each in error.exceptions)  # Of several models, one after the other.
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in _BUSY or status >= 500
    return isinstance(error, ConnectionError | TimeoutError) or any(
        cls.__name__ in _LOST for cls in type(error).__mro__
    )


def asked_to_wait(error: BaseException) -> float | None:
    """What the server says, in seconds."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    said = getattr(error, "retry_after", None)
    try:
        seconds = float(headers.get("retry-after") if said is None else said)
    except (AttributeError, TypeError, ValueError):
        return None
    return seconds if 0 <= seconds < 86_400 else None
