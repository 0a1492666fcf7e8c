"""Every error surefoot raises, in one tree, each with the exit code the CLI ends with.

Errors carry facts as fields; their message says what happened, to which run, and what helps.
A *stop* is a named, resumable halt: the run is intact and goes on once a person has answered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final

__all__ = [
    "Cancelled", "CodeChanged", "CodecMissing", "CorruptCheckpoint", "Denied", "Drifted", "Fatal", "Fenced", "InDoubt",
    "JournalCorrupt", "JournalRegressed", "MovedAway", "NotDone", "NotFound", "Outdated", "Quarantined", "RetryAfter", "RunConflict",
    "SchemaMismatch", "StepFailed", "Stopped", "StoreFull", "StoreNotDurable", "StoreUnavailable", "SurefootError",
    "Unavailable", "UsageError", "ValueRejected", "WaitingForAnswer", "WorkflowFailed",
]  # fmt: skip
"""The errors that are also names of `surefoot` and `surefoot.aio`."""


def _as_data(data: Any, _store: str) -> str:
    return repr(data)


in_words: Callable[[Any, str], str] = _as_data
"""Data in an error (a cure, drift) as text for people, with its store. This layer is below all modules that know the
words: `surefoot/__init__.py` sets the function of `view/words.py` here, once.
"""


class SurefootError(Exception):
    """The root of the tree: `except sf.SurefootError` catches everything surefoot raises."""

    exit_code = 1


# --- mistakes of the calling code -------------------------------------------------------------


class UsageError(SurefootError):
    """surefoot was called in a way that could not be made safe; the message names the cure."""

    exit_code = 2


class RunConflict(UsageError):
    """The run id is taken by another workflow or by other arguments."""


class NotFound(UsageError):
    """No such run, or no such store; the message names the place that was looked in."""


class MovedAway(UsageError):
    """The run, checkpoint or thread has moved to another store, whose URL is `store`. Nothing of it is done here."""

    def __init__(self, message: str, *, store: str = "") -> None:
        super().__init__(message)
        self.store = store


class Outdated(UsageError):
    """What somebody decided on has changed since it was looked at. Nothing was recorded: look again, and decide anew."""


class ValueRejected(UsageError):
    """A value that would not come back as it is. `path` points at the bad field (`$.a[3].b`)."""

    def __init__(self, message: str, *, path: str = "$") -> None:
        super().__init__(message)
        self.path = path


# --- exceptions for user code to raise ---------------------------------------------


class Fatal(SurefootError):
    """Raised by a step or an effect: it failed, nothing happened, and trying again will not help."""


class Denied(Fatal):
    """An effect that needs a person's yes got a no. `by` and `note` are whose, and what they said."""

    def __init__(self, message: str, by: str = "", note: str = "") -> None:
        super().__init__(message, by, note)
        self.by = by
        self.note = note

    def __str__(self) -> str:
        return str(self.args[0])


class NotDone(SurefootError):
    """Raised by an effect: this attempt failed and certainly changed nothing outside."""


class RetryAfter(NotDone):
    """Raised by a step or an effect: nothing happened; try again after so many seconds."""

    def __init__(self, seconds: float, message: str = "") -> None:
        if not 0 <= seconds < 3.2e9:
            raise UsageError(f"RetryAfter({seconds!r}): seconds must be between zero and a hundred years")
        super().__init__(message or f"asked to try again after {seconds} s")
        self.seconds = float(seconds)


class Unavailable(NotDone):
    """Raised by a step, an effect or a workflow: what it needs is away. Nothing was done; the run is parked.

    It goes on after `retry_after` (`"5m"`, or seconds); without one after a minute, then after twice as long, up to
    fifteen. It uses up no `retries=`.
    """

    def __init__(self, why: str = "", retry_after: str | float | timedelta | None = None) -> None:
        if retry_after is not None and not _is_duration(retry_after):
            raise UsageError(
                f"Unavailable(retry_after={retry_after!r}): write seconds as a number, '90s', '5m', '1h30m' or a timedelta"
            )
        super().__init__(why or "what it needs is not available")
        self.why = why
        self.retry_after = retry_after


DURATION: Final = re.compile(r"\s*(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w)\s*)+")
"""A duration in words, as `core.timer` reads it: here, so that a mistake is found at its source."""


def _is_duration(given: object) -> bool:
    if isinstance(given, str):
        return DURATION.fullmatch(given) is not None
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 3.2e9


class HttpError(SurefootError):
    """Raised by `effects.http_request`: the server refused the request, and nothing happened."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return self.message


class HttpUnsure(HttpError):
    """The server's answer does not tell whether the request was carried out."""


# --- how runs end badly --------------------------------------------------------------------------


class StepFailed(SurefootError):
    """A call (or a whole run) failed with an exception that cannot come back as itself.

    `type` is the exception's class name and `message` its text, as recorded; `module` is where the class is defined, if
    it can be found by its name. While that module is loaded, it is an instance of that class too, so that `except`
    matches. Small attributes that can be stored come along, and `__cause__` and `__context__` as failures of their own.
    """

    def __init__(self, type: str, message: str, *, module: str = "") -> None:  # noqa: A002 - the public field is called type
        super().__init__(f"{type}: {message}" if message else type)
        self.type = type
        self.message = message
        if module:
            self.module = module

    module = ""


class Cancelled(SurefootError):
    """The run was cancelled by a person or by another program."""


class Fenced(SurefootError):
    """This process lost its claim on the run: a newer claimant has taken over. Nothing was written."""


class StoreUnavailable(SurefootError):
    """The store cannot be read or written now; nothing that was acknowledged is lost."""


class StoreFull(StoreUnavailable):
    """There is no space left for the journal; free some and resume."""


# --- stops ---------------------------------------------------------------------------------------


class Stopped(SurefootError):
    """A named, resumable halt. `remedies` are what helps, and `drift` what has changed outside, both as data."""

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        run_id: str = "",
        address: str = "",
        facts: dict[str, Any] | None = None,
        cures: Iterable[Any] = (),
        drift: Iterable[Any] = (),
    ) -> None:
        self.summary = message
        self.run_id = run_id
        self.address = address
        self.facts = dict(facts or {})
        self.remedies = tuple(cures)
        self.drift = tuple(drift)
        self.stops: tuple[Stopped, ...] = (self,)
        self.store = ""
        """The URL of its store, once known: then the cures name it."""
        super().__init__(message)

    def name_store(self, url: str) -> None:
        """Set the store, unless a lower layer has set it already."""
        self.store = self.store or url

    @property
    def cures(self) -> tuple[tuple[str, str], ...]:
        """What helps, in words: pairs of when, and a command or advice."""
        return tuple((cure.when, in_words(cure, self.store)) for cure in self.remedies)

    def __str__(self) -> str:
        cures = self.cures
        width = max((len(when) for when, _ in cures), default=0)
        lines = [self.summary, *(f"  {when:<{width}}   {do}" for when, do in cures)]
        others = [str(stop) for stop in self.stops if stop is not self]
        return "\n".join([*lines, *(f"also: {text}" for text in others)])


class InDoubt(Stopped):
    """An effect was started and its outcome was not recorded. Cure: settle."""


class Drifted(Stopped):
    """The outside world no longer matches what the run left behind."""


class CodeChanged(Stopped):
    """The code no longer matches the journal. Cure: the old code, `sf.patched`, rewind or fork."""


class WaitingForAnswer(Stopped):
    """The run has asked for an answer or an event that has not come yet."""


class Quarantined(Stopped):
    """The run was set aside because it kept dying without progress."""


class WorkflowFailed(Stopped):
    """The workflow raised, and says `on_failure="stop"`. Cure: fix the cause, then `surefoot runs retry`."""


class SchemaMismatch(Stopped):
    """Recorded data has a shape or a version that the code at hand does not know."""


class Damaged(Stopped):
    """Stored bytes are missing or are not what was written. Evidence is kept, nothing is overwritten."""

    exit_code = 4


class JournalCorrupt(Damaged):
    """A record is not what was written. Cure: inspect, repair."""


class JournalRegressed(Damaged):
    """The store is older than it once was. Cure: put the newer file back, or adopt."""


class CorruptCheckpoint(Damaged):
    """No generation of an explicit checkpoint can be trusted."""


class CodecMissing(Damaged):
    """A record names a codec this installation does not have."""


class StoreNotDurable(Damaged):
    """The backend does not keep what it acknowledges."""


STOPS: dict[str, type[Stopped]] = {
    cls.__name__: cls
    for cls in (
        InDoubt,
        Drifted,
        CodeChanged,
        WaitingForAnswer,
        Quarantined,
        WorkflowFailed,
        SchemaMismatch,
        JournalCorrupt,
        JournalRegressed,
        CorruptCheckpoint,
        CodecMissing,
        StoreNotDurable,
    )
}
"""Recorded stops are revived by name from this closed table, never by import."""
