"""An engine's interface for a worker: it serves runs with a driver. Its interface for other modules: `engines.py`."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from surefoot.engine.process import engines
from surefoot.engine.worker.driver import Driver


class Share(Struct, frozen=True):
    """The part of the work that a worker takes."""

    queues: tuple[str, ...]
    """Empty: all."""
    concurrency: int
    """How many runs are driven at once."""
    grace_seconds: float
    """How long calls in flight may take when the worker is stopped."""


class Server(Protocol):
    """Drives the runs that its engine selects."""

    def run(self) -> None:
        """Run until `stop` is called, and the calls in flight have ended or their time is over."""

    def stop(self) -> None:
        """Take up no more runs. May be called from any thread."""


class Engine(engines.Bell, Protocol):
    def serve(self, driver: Driver, share: Share) -> Server:
        """The server that `sf.Worker` and `surefoot worker` run."""


def chosen() -> Engine:
    """The engine of this process."""
    engine: Engine = engines.opened()
    return engine
