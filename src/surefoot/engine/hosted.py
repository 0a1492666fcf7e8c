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

import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from surefoot.core.command import Returned
from surefoot.core.history import PastEffect, PastState
from surefoot.engine.declare import current
from surefoot.engine.declare.plan import Hosted, Options, Plan
from surefoot.engine.declare.registry import Definition
from surefoot.engine.declare.signals import ReleaseSignal
from surefoot.engine.drive import start
from surefoot.engine.drive.start import Begun
from surefoot.engine.operate.handle import Run
from surefoot.engine.process import config
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.session.session import Session
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
        self.stored, self.given = stored or _itself, given or _itself
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
        one = _Execution(self, run, store, labels, ready)
        begun: Begun | None = None
        if is_new:
            session, found = one.dormant(body)
            if session is None:
                return found
            begun = Begun(session, found)
        try:
            plan = one.planned(partial(one.executed, body))
            return self.given(start.run_blocking(one.runtime(), plan, run, one.options, begun=begun))
        except _Unrecorded as unrecorded:
            return unrecorded.value
        finally:
            if one.failed_at:
                one.reopen()

    async def run_async(
        self, run: str, body: Callable[[], Awaitable[Any]], *, store: str | None, labels: Mapping[str, str],
        ready: Callable[[], object], is_new: bool = False,
    ) -> Any:  # fmt: skip
        """The same for tasks."""
        from surefoot.engine.drive import acts_async  # Blocking units do without asyncio.

        one = _Execution(self, run, store, labels, ready)
        begun: Begun | None = None
        if is_new:
            session, found = await acts_async.invoke_dormant(partial(one.wake, body), body, one.ended)
            if session is None:
                return found
            begun = Begun(session, found)
        try:
            plan = one.planned(partial(one.executed_async, body))
            return self.given(await start.run_async(one.runtime(), plan, run, one.options, begun=begun))
        except _Unrecorded as unrecorded:
            return unrecorded.value
        finally:
            if one.failed_at:
                await acts_async.hop(one.reopen)

    def planned(self, hosted: Hosted) -> Plan:
        plan = self._plan
        return Plan(plan.definition, plan.args, plan.digest, plan.secrets, plan.defaults, hosted)

    @property
    def host(self) -> str:
        return self._definition.hosted


class _Execution:
    """One execution of a unit."""

    def __init__(
        self, unit: Unit, run: str, store: str | None, labels: Mapping[str, str], ready: Callable[[], object]
    ) -> None:
        self._unit, self._run, self._store, self._ready = unit, run, store, ready
        self._labels = labels
        self.failed_at = ""
        """The call whose exception has ended it, where it was one."""

    @property
    def options(self) -> Options:
        return Options(labels=dict(self._labels))

    def runtime(self) -> Runtime:
        return config.runtime(self._store, create=True)

    def planned(self, body: Callable[[], Any]) -> Plan:
        return self._unit.planned(Hosted(body, self._ready))

    def wake(self, body: Callable[[], Any]) -> Session:
        return start.wake(self.runtime(), self.planned(body), self._run, self.options)

    def dormant(self, body: Callable[[], Any]) -> tuple[Session | None, Any]:
        """Execute what may make no call. Without one: what it gave. Else its session, and what became of it."""
        place = current.Dormant(partial(self.wake, body), threading.get_ident())
        token = current.set_place(place)
        value: Any = None
        error: BaseException | None = None
        try:
            with current.driven:
                value = body()
        except BaseException as raised:
            if place.awake is None:
                raise
            error = raised
        finally:
            current.reset(token)
        if place.awake is None:
            return None, value
        session = current.session_of(place)
        session.flight.function_ended()
        return session, self.ended(session, value, error)

    def executed(self, body: Callable[[], Any]) -> Any:
        session = current.session_of(current.get())
        try:
            value = body()
        except Exception as error:  # noqa: BLE001 - what it means is the framework's affair
            raise self._released(session, error) from None
        return self._stored(session, value)

    async def executed_async(self, body: Callable[[], Awaitable[Any]]) -> Any:
        session = current.session_of(current.get())
        try:
            value = await body()
        except Exception as error:  # noqa: BLE001 - as above
            raise self._released(session, error) from None
        return self._stored(session, value)

    def ended(self, session: Session, value: Any, error: BaseException | None) -> Returned | BaseException:
        """What the end of a unit means for its run."""
        if error is not None:
            return self._released(session, error) if isinstance(error, Exception) else error
        try:
            return session.result(self._stored(session, value))
        except BaseException as refused:  # noqa: BLE001 - decided by `conclusion.conclude`
            return refused

    def _stored(self, session: Session, value: Any) -> Any:
        if session.state.created is None:
            raise ReleaseSignal(_Unrecorded(value))
        try:
            return self._unit.stored(value)
        except ValueRejected as error:
            raise ReleaseSignal(error) from None

    def _released(self, session: Session, error: Exception) -> ReleaseSignal:
        identity, address = session.failed_with
        if identity == id(error):
            self.failed_at = address
        return ReleaseSignal(error)

    def reopen(self) -> None:
        """The call whose failure has ended the unit is tried again with it, if it has provably done nothing."""
        found = Run(self.runtime(), self._run)
        past = found.state().calls.get(self.failed_at)
        if past is None or past.state is not PastState.FAILED or (isinstance(past, PastEffect) and past.gave_up):
            return
        with suppress(SurefootError):  # Somebody else goes on with it already; or it cannot be tried again by itself.
            found.retry(at=self.failed_at, by=self._unit.host, note="the unit is executed again")


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
