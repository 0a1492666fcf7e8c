"""How the end of a run travels through user code.

These are BaseExceptions: tools and agent frameworks catch `Exception` and would treat a stop as the
failure of a tool. They never leave surefoot; the caller of `.run` sees ordinary exceptions.
"""

from __future__ import annotations

from typing import Any

from surefoot.core.entry import Stop
from surefoot.errors import SurefootError


class RunSignal(BaseException):
    """Unwinds a branch of a run."""


class StopSignal(RunSignal):
    def __init__(self, stop: Stop) -> None:
        super().__init__(str(stop))
        self.stop = stop


class HaltSignal(RunSignal):
    """surefoot was misused, or its store failed: the run cannot go on in this process."""

    def __init__(self, error: SurefootError) -> None:
        super().__init__(str(error))
        self.error = error


class CancelSignal(RunSignal):
    pass


class SuspendSignal(RunSignal):
    """A worker does not wait long: the run is taken up again when it can go on."""


class LostSignal(RunSignal):
    """Another process claimed the run while this one only replayed it: nothing was executed here."""


class HandBackSignal(RunSignal):
    """The worker is being stopped: this run goes on elsewhere."""


class ContinueSignal(RunSignal):
    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__("continue as new")
        self.args_, self.kwargs_ = args, kwargs


class InterruptSignal(RunSignal):
    """Another branch was interrupted (Ctrl-C): this one starts nothing more."""


class ReleaseSignal(RunSignal):
    """Somebody else decides about another attempt: the run is let go of with this error, and has not failed.

    A seam for adapters, whose framework runs a unit of work again after an ordinary exception.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class PlanSignal(RunSignal):
    """A dry replay has reached the first call that would really be executed."""
