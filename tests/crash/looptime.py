"""Time that passes only while everybody waits: a loop and a clock that share it.

Async flows are about who is quicker. Here a second of `asyncio.sleep` costs nothing, lasts exactly a second for all tasks,
and never ends while a thread still works for one of them. So timing is a part of the scenario, and not of the machine.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

from surefoot.core.timer import MICROS, Duration, Moment, seconds
from surefoot.engine.drive import acts_async
from surefoot.testing.clock import FastClock

THREAD_SECONDS = 5.0
"""How long a thread is really waited for, before the loop looks again whether it still works."""
MANY_TURNS, TURN_SECONDS = 50, 0.001
_passed = 0.0
_owed: set[asyncio.Future[Any]] = set()
"""What threads are working on."""


def run(body: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """`asyncio.run`, in this time."""
    acts_async._Durable = _Owed  # type: ignore[misc]
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(body())


class LoopClock(FastClock):
    """The clock of the runs. Blocking code that waits lets the time pass at once."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self._start = start

    def read(self) -> Moment:
        return Moment(self.now(), "fast-forward", self.now())

    def now(self) -> int:
        return self._start + round(_passed * MICROS)

    def forward(self, duration: Duration) -> None:
        _pass(seconds(duration))

    def nap(self, left: float) -> float:
        if asyncio._get_running_loop() is not None:
            return left
        return super().nap(left)


def _pass(more: float) -> None:
    global _passed  # noqa: PLW0603 - time is one for all
    _passed += more


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__(_Selector())

    def time(self) -> float:
        return _passed

    def run_in_executor(self, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        future = super().run_in_executor(*args)
        owe(future)
        return future


class _Owed(acts_async._Durable):
    """What is being written by the committer's thread."""

    def __init__(self, *, loop: Any) -> None:
        super().__init__(loop=loop)
        owe(self)


def owe(future: asyncio.Future[Any]) -> None:
    _owed.add(future)
    future.add_done_callback(_owed.discard)


class _Selector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self._turns = 0

    def select(self, timeout: float | None = None) -> Any:
        """Whoever turns the loop round and round until something happens (anyio, which cancels) lets time pass, too."""
        if timeout is None or timeout <= 0:
            found = super().select(timeout)
            self._turns = 0 if found else self._turns + 1
            if self._turns > MANY_TURNS:
                _pass(TURN_SECONDS)
            return found
        self._turns = 0
        if any(not future.done() for future in _owed):
            return super().select(THREAD_SECONDS)
        found = super().select(0)
        if not found:
            _pass(timeout)
        return found
