"""A worker: takes up runs that can go on, drives them, and releases those that have to wait.

The engine (`protocol.py`) finds those runs; the driver drives them.

A worker that is stopped lets the calls in flight finish, begins no others, and hands its runs back. One that is killed
leaves its claims behind: others take the runs up once its lock or its lease is gone.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

from surefoot.core.timer import Duration, seconds
from surefoot.engine.declare.registry import Definition, registry, several
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.worker import protocol
from surefoot.engine.worker.driver import Driver
from surefoot.errors import UsageError

log = logging.getLogger("surefoot")
DEFAULT_CONCURRENCY: Final = 10
DEFAULT_GRACE: Final = "30s"


class Worker:
    """Drives runs of the workflows that this process knows.

    `queue` names the queues it serves (all, unless given), `concurrency` how many runs it drives at once, `workflows`
    the ones it drives (all that were imported, unless given). `with sf.Worker(): …` works in the background;
    `sf.Worker().run()` until `stop` is called.
    """

    def __init__(
        self,
        *,
        store: str | None = None,
        queue: str | Sequence[str] | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        workflows: Iterable[Any] | None = None,
        grace: Duration = DEFAULT_GRACE,
    ) -> None:
        if type(concurrency) is not int or concurrency < 1:
            raise UsageError(f"sf.Worker(concurrency={concurrency!r}): must be a whole number, one or more")
        self.concurrency = concurrency
        self.queues = (queue,) if isinstance(queue, str) else tuple(map(str, queue or ()))
        self.grace_seconds = seconds(grace)
        only = None if workflows is None else [_definition(workflow) for workflow in workflows]
        self._driver = Driver(registry.all if only is None else lambda: only, store=store, threads=concurrency)
        share = protocol.Share(self.queues, concurrency, self.grace_seconds)
        self._server = protocol.chosen().serve(self._driver, share)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Work in this thread until `stop` is called."""
        _require_distinct(self._driver.served())
        self._server.run()

    def stop(self) -> None:
        """Take up nothing more; `run` returns when what is in flight has ended, or its time is over."""
        self._server.stop()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._in_background, name="surefoot-worker", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _in_background(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 - raised where the worker is waited for
            self._failure = error
            log.warning("worker: it has ended: %s: %s", type(error).__name__, error)

    @property
    def runtime(self) -> Runtime:
        """The store that it works on, as opened now."""
        return self._driver.runtime

    @property
    def busy(self) -> tuple[str, ...]:
        """The runs it drives at this moment."""
        return self._driver.busy

    @property
    def ended(self) -> dict[str, int]:
        """How the runs that this worker took up ended here, counted: done, failed, stopped, suspended, …"""
        return self._driver.ended


def _definition(workflow: Any) -> Definition:
    definition = getattr(workflow, "definition", None)
    if not isinstance(definition, Definition):
        raise UsageError(f"sf.Worker(workflows=[…]): {workflow!r:.100} is not a workflow")
    return definition


def _require_distinct(served: Sequence[Definition]) -> None:
    """Refuse two workflows of one name: each would drive the other's runs."""
    if not served:
        raise UsageError("this worker knows no workflow: import the modules that define them first")
    by_name: dict[str, dict[str, Definition]] = {}
    for each in served:
        by_name.setdefault(each.name, {})[each.origin] = each
    for name, found in by_name.items():
        if len(found) > 1:
            raise several(name, found.values())
