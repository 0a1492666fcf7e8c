"""What an engine is to a worker: it serves runs with a driver. What it is to other modules: `engines.py`."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from surefoot.engine.process import engines
from surefoot.engine.worker.driver import Driver


class Share(Struct, frozen=True):
    """Which part of the work a worker takes."""

    queues: tuple[str, ...]
    """Empty: all."""
    concurrency: int
    """How many runs are driven at once."""
    grace_seconds: float
    """How long calls in flight may take when it is stopped."""


class Server(Protocol):
    """Has runs driven, as its engine finds out which."""

    def run(self) -> None:
        """Until `stop` is called, and what is in flight has ended or its time is over."""

    def stop(self) -> None:
        """Have nothing more taken up. From any thread."""


class Engine(engines.Bell, Protocol):
    def serve(self, driver: Driver, share: Share) -> Server:
        """What `sf.Worker` and `surefoot worker` run."""


def chosen() -> Engine:
    """The engine of this process."""
    engine: Engine = engines.opened()
    return engine
