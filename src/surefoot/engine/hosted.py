"""Units of somebody else's engine as runs: a framework keeps its own state, and decides what is executed, and when again.

Each unit is a run whose id is made of the framework's own names, so that it finds its record when it is executed again. It
differs from the run of a workflow in this:

- What is executed is handed in each time. No worker and no command takes it up: people are told to go to the framework.
- It is created at its first call. A unit that makes none costs a look, and leaves nothing.
- An exception lets go of it, and is no end: the framework decides about another attempt. If it was that of a call, the
  call is made again, too.
- It is not rehearsed: it is no workflow code, and what it does besides its calls would be done once more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from surefoot.core.history import PastEffect, PastState
from surefoot.engine.declare import current
from surefoot.engine.declare.plan import Hosted, Options, Plan
from surefoot.engine.declare.registry import Definition
from surefoot.engine.declare.signals import ReleaseSignal
from surefoot.engine.drive import start
from surefoot.engine.operate.handle import Run
from surefoot.engine.process import config
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import SurefootError, ValueRejected


class Unit:
    """One kind of unit: what lists call the workflow of its runs. `host`: the framework.

    `stored` makes of what a unit gives what can be recorded, and `given` makes the one of the other.
    """

    def __init__(
        self,
        host: str,
        name: str,
        stored: Callable[[Any], Any] | None = None,
        given: Callable[[Any], Any] | None = None,
    ) -> None:
        self._stored, self._given = stored or _itself, given or _itself
        self._definition = Definition(_nothing, name=name, hosted=host)
        self._plan = self._definition.plan("unit", (), {})

    def run(
        self, run: str, body: Callable[[], Any], *, store: str | None, labels: Mapping[str, str],
        ready: Callable[[], object], is_new: bool = False,
    ) -> Any:  # fmt: skip
        """What `body` returns, now or when it was executed before. What it raises leaves the run open.

        `ready` returns once the run may be created; it may block. `is_new`: it was hardly executed before, so that there is
        nothing to look for; if it was, that is found out at its first call, and it begins anew.
        """
        failed = _Failed()

        def executed() -> Any:
            try:
                value = body()
            except Exception as error:  # noqa: BLE001 - what it means is the framework's affair
                raise failed.noted(error) from None
            return self._recorded(value)

        runtime, options = config.runtime(store, create=True), Options(labels=dict(labels))
        try:
            return self._given(start.run_blocking(runtime, self._planned(executed, ready, is_new=is_new), run, options))
        except _Unrecorded as unrecorded:
            return unrecorded.value
        finally:
            if failed.at:
                self._reopen(runtime, run, failed.at)

    async def run_async(
        self, run: str, body: Callable[[], Awaitable[Any]], *, store: str | None, labels: Mapping[str, str],
        ready: Callable[[], object], is_new: bool = False,
    ) -> Any:  # fmt: skip
        """The same for tasks."""
        failed = _Failed()

        async def executed() -> Any:
            try:
                value = await body()
            except Exception as error:  # noqa: BLE001 - as above
                raise failed.noted(error) from None
            return self._recorded(value)

        runtime, options = config.runtime(store, create=True), Options(labels=dict(labels))
        planned = self._planned(executed, ready, is_new=is_new)
        try:
            return self._given(await start.run_async(runtime, planned, run, options))
        except _Unrecorded as unrecorded:
            return unrecorded.value
        finally:
            if failed.at:
                from surefoot.engine.drive import acts_async

                await acts_async.hop(self._reopen, runtime, run, failed.at)

    def _reopen(self, runtime: Runtime, run: str, address: str) -> None:
        """The call whose failure has ended the unit is tried again with it, if it has provably done nothing."""
        found = Run(runtime, run)
        past = found.state().calls.get(address)
        if past is None or past.state is not PastState.FAILED or (isinstance(past, PastEffect) and past.gave_up):
            return
        with suppress(SurefootError):  # Somebody else goes on with it already; or it cannot be tried again by itself.
            found.retry(at=address, by=self._definition.hosted, note="the unit is executed again")

    def _recorded(self, value: Any) -> Any:
        if current.get().session.state.created is None:
            raise ReleaseSignal(_Unrecorded(value))
        try:
            return self._stored(value)
        except ValueRejected as error:
            raise ReleaseSignal(error) from None

    def _planned(self, body: Callable[[], Any], ready: Callable[[], object], *, is_new: bool) -> Plan:
        plan = self._plan
        return Plan(plan.definition, plan.args, plan.digest, plan.secrets, plan.defaults, Hosted(body, ready, is_new))


class _Failed:
    """The call whose exception has ended a unit, where it was one."""

    at = ""

    def noted(self, error: Exception) -> ReleaseSignal:
        place = current.get()
        identity, address = place.session.failed_with
        if identity == id(error):
            self.at = address
        return ReleaseSignal(error)


class _Unrecorded(Exception):
    """It made no call, so there is no run, and its result is recorded by the framework alone."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def _itself(value: Any) -> Any:
    return value


def _nothing() -> None:
    """Stands for the code of a unit, which its framework has."""
    raise AssertionError
