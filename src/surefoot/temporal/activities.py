"""What workers do for the loop in Temporal: one drive of a run, a request to cancel, a word of a person.

A drive ends with a value: how the run stands, and when it wants to be driven again. Where it cannot be driven here and
now (a living process has it, its queue is full, another worker has its code), the attempt fails and is tried again: that
costs Temporal no event.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import msgspec
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from surefoot.core import values
from surefoot.core.entry import CancelRequested
from surefoot.core.state import CANCELLED, DONE, ENDED, FAILED, STOPPED, WAITING, RunState
from surefoot.core.timer import MICROS
from surefoot.engine.declare.plan import Options, Plan, check_id, created_entry, require_same
from surefoot.engine.declare.registry import several
from surefoot.engine.operate.handle import Run
from surefoot.engine.process import journal
from surefoot.engine.worker import queues, stand
from surefoot.engine.worker.driver import Driver
from surefoot.engine.worker.protocol import Share
from surefoot.engine.worker.stand import DriveResult, Stand
from surefoot.errors import Damaged, StoreUnavailable, SurefootError, UsageError
from surefoot.store.contract import Wanted
from surefoot.temporal import names
from surefoot.temporal.pages import show_command, shown

if TYPE_CHECKING:
    from temporalio.client import Client

    from surefoot.temporal.engine import Temporal

T = TypeVar("T")
log = logging.getLogger("surefoot")
LOOK_SECONDS: Final = 0.1
ELSEWHERE_SECONDS: Final = 1.0
"""After which time a run is offered again that another worker has to drive."""
LONGEST_PAUSE_SECONDS: Final = 10.0
LARGEST_RESULT: Final = 1_000_000


class Activities:
    """Of one worker, on all of its task queues."""

    def __init__(self, engine: Temporal, driver: Driver, client: Client, share: Share) -> None:
        self._engine, self._driver, self._client = engine, driver, client
        self._grace_seconds, self._concurrency = share.grace_seconds, share.concurrency
        self.has_attributes = False
        self.leaving = False

    @activity.defn(name=names.DRIVE)
    async def drive(self, order: dict[str, Any]) -> dict[str, Any]:
        """Drive the run until it ends, stops or waits."""
        run = order["run"]
        if len(self._driver.busy) >= self._concurrency:  # Several queues gave one at the same moment.
            _later(names.FIRST_RETRY.total_seconds(), f"run {run} found no room in this worker")
        await self._in_thread(self._prepared, order)
        drive = asyncio.wrap_future(self._driver.drive(run))
        try:
            await self._beating(run, drive)
        except asyncio.CancelledError:
            await self._handed_back(run, drive)
            # If Temporal no longer wants this drive, it does not hear this either.
            _later(names.FIRST_RETRY.total_seconds(), f"run {run} was handed back")
        found = await self._in_thread(self._settled, order, drive.result())
        if found["status"] == CANCELLED:
            info = activity.info()
            await self._client.get_workflow_handle(run, run_id=info.workflow_run_id).cancel()
        return found

    async def _beating(self, run: str, drive: asyncio.Future[DriveResult]) -> None:
        """Until the drive has ended. What is in flight is seen in Temporal meanwhile."""
        pause = self._engine.address.heartbeat_seconds / 4
        while not (await asyncio.wait([drive], timeout=pause))[0]:
            activity.heartbeat(self._in_flight(run))

    def _in_flight(self, run: str) -> dict[str, Any]:
        for session in self._driver.runtime.driven():
            if session.run == run:
                return {"calls": sorted(session.flight.calls), "entries": session.state.seq}
        return {}

    async def _handed_back(self, run: str, drive: asyncio.Future[DriveResult]) -> None:
        """The worker is stopped, or Temporal no longer wants this drive: the call in flight may finish."""
        end = asyncio.get_running_loop().time() + self._grace_seconds
        while not drive.done() and asyncio.get_running_loop().time() < end:
            self._driver.hand_back([run])
            try:
                await asyncio.wait([drive], timeout=LOOK_SECONDS)
            except asyncio.CancelledError:  # Said twice.
                continue

    @activity.defn(name=names.CANCEL)
    async def cancel(self, order: dict[str, Any]) -> None:
        """The workflow in Temporal was asked to cancel: the run is."""
        await self._in_thread(self._cancelled, order["run"])

    @activity.defn(name=names.SAY)
    async def say(self, order: dict[str, Any]) -> str:
        """Somebody says something of the run. By whom, is what Temporal knows of the caller."""
        who = await self._sender(order["run"], order["update"])
        return await self._in_thread(self._said, order["run"], order["said"], who)

    async def _in_thread(self, work: Callable[..., T], *given: Any) -> T:
        """The store is asked in threads; an error of ours is one of Temporal's."""
        try:
            return await asyncio.to_thread(functools.partial(work, *given))
        except (StoreUnavailable, OSError) as error:
            raise ApplicationError(str(error), type="StoreUnavailable") from None
        except SurefootError as error:
            raise ApplicationError(str(error), type=type(error).__name__, non_retryable=True) from None

    # -- before a drive ---------------------------------------------------------------------------------

    def _prepared(self, order: dict[str, Any]) -> None:
        run = order["run"]
        self._driver.reopen()
        if self.leaving:
            _later(ELSEWHERE_SECONDS, f"this worker is stopping; run {run} is for another one")
        if self._driver.leaves(run):
            _later(ELSEWHERE_SECONDS, f"run {run} needs the code of another worker")
        if not order[names.RUNG]:
            self._created(order)
        if queues.limits():
            self._admitted(run)

    def _created(self, order: dict[str, Any]) -> None:
        """A run that was started in Temporal is created by its first drive, in the journal that has none of it."""
        run, runtime = order["run"], self._driver.runtime
        check_id(run)
        try:
            found = journal.load(runtime.store, run)
        except Damaged:  # It is there. Its drive deals with the damage.
            return
        if found is None or order["first"]:
            plan = self._planned(order)
            if found is None:
                with self._engine.quiet(run):
                    created = created_entry(plan, Options(queue=_queue_of(order["queue"])))
                    require_same(plan, journal.create(runtime.store, runtime.clock, run, created), runtime.store)
            else:
                require_same(plan, found[0], runtime.store)

    def _planned(self, order: dict[str, Any]) -> Plan:
        known = [each for each in self._driver.served() if order["workflow"] in each.identity.names]
        if not known:
            _later(ELSEWHERE_SECONDS, f"workflow {order['workflow']!r} is in the code of another worker, or of none")
        if len(known) > 1:
            raise several(order["workflow"], known)
        try:
            return known[0].plan(order["run"], tuple(order["args"]), order["kwargs"])
        except TypeError as error:
            raise UsageError(f"run {order['run']}: workflow {order['workflow']} does not take that: {error}") from None

    def _admitted(self, run: str) -> None:
        """The limits of a queue hold over all workers: the store says whether there is room for one more."""
        runtime = self._driver.runtime
        found = self._driver.look(run)
        now = runtime.clock.now()
        if found is None or found.status in ENDED or found.holder or found.wake is None or found.wake > now:
            return
        driven = tuple({*self._driver.busy, *(session.run for session in runtime.driven())})
        wanted = Wanted(
            runtime.store.worker, self._driver.names(), 1, now, driven=driven, limits=queues.limits(), only=(run,)
        )
        reserved = runtime.store.reserve(wanted)
        if run not in reserved.runs:
            wait = ELSEWHERE_SECONDS if reserved.next_wake is None else (reserved.next_wake - now) / MICROS
            _later(max(0.05, min(wait, LONGEST_PAUSE_SECONDS)), f"the queue of run {run} has no room")

    # -- after a drive ----------------------------------------------------------------------------------

    def _settled(self, order: dict[str, Any], result: DriveResult) -> dict[str, Any]:
        """How the run stands now, for the loop; or a retry, if somebody has to look again soon."""
        run, found = result.run, result.stand
        if self._driver.leaves(run):
            _later(ELSEWHERE_SECONDS, f"run {run} needs the code of another worker")
        if found is None:
            found = self._driver.look(run)
        if found is None:
            return self._unreadable(run, result)
        now = self._driver.runtime.clock.now()
        if found.holder:
            until = LONGEST_PAUSE_SECONDS if found.busy_until is None else (found.busy_until - now) / MICROS
            _later(max(0.1, min(until, self._patience())), f"run {run} is driven by {found.holder[:8]}")
        if result.how == stand.TROUBLE and found.status not in ENDED:
            _later(self._patience(), f"run {run}: {type(result.error).__name__}")
        if result.how == stand.PASSED_BY and found.status != WAITING and self._is_ready(run):
            _later(self._patience(), f"run {run}: another process was first")
        return self._stand(order, found, now)

    def _is_ready(self, run: str) -> bool:
        found = self._driver.look(run)
        return found is not None and found.wake is not None and found.wake <= self._driver.runtime.clock.now()

    def _patience(self) -> float:
        """Longer and longer, as attempts go by."""
        return min(0.2 * 2.0 ** min(activity.info().attempt, 10), LONGEST_PAUSE_SECONDS)

    def _unreadable(self, run: str, result: DriveResult) -> dict[str, Any]:
        kind = type(result.error).__name__
        if result.how != stand.DAMAGED:
            _later(LONGEST_PAUSE_SECONDS, f"run {run} cannot be read in {self._driver.runtime.store.url}: {kind}")
        return shown(Stand(run, STOPPED, reason=kind), self._engine, attributes=self.has_attributes)

    def _stand(self, order: dict[str, Any], found: Stand, now: int) -> dict[str, Any]:
        ended = found.status in ENDED
        wait = None if ended or found.wake is None else max((found.wake - now) / MICROS, 0.0)
        page = shown(found, self._engine, attributes=self.has_attributes, wait=wait)
        if ended:
            page |= self._end(found.run, found.status, tells=order["mirror"] or self._engine.address.mirror)
        return page

    def _end(self, run: str, status: str, *, tells: bool) -> dict[str, Any]:
        """The result, for callers that started the run in Temporal; else only that it ended."""
        if not tells and status != FAILED:
            return {"result": {"run": run, "status": status}}
        found = journal.load(self._driver.runtime.store, run)
        state = RunState(run) if found is None else found[0]
        if status == FAILED and state.error is not None:
            kind, message = values.error_summary(state.error)
            return {"type": kind, "message": message if tells else f"run {run} failed: {show_command(run)}"}
        if status != DONE or state.pruned is not None:
            return {"result": None}
        raw = bytes(journal.whole(self._driver.runtime.store, run, state.value))
        large = {"$large": len(raw), "run": run}
        return {"result": large if len(raw) > LARGEST_RESULT else msgspec.json.decode(raw)}

    # -- words of others --------------------------------------------------------------------------------

    def _cancelled(self, run: str) -> None:
        runtime = self._driver.runtime

        def decide(state: RunState) -> CancelRequested | None:
            over = state.status in ENDED or state.cancel is not None
            return (
                None
                if over
                else CancelRequested("temporal", "the workflow in Temporal was asked to cancel", "temporal")
            )

        with self._engine.quiet(run):
            journal.visit(runtime.store, runtime.clock, run, decide)

    def _said(self, run: str, said: Any, who: str) -> str:
        from surefoot.temporal.words import say

        return say(Run(self._driver.runtime, run), said, by=who)

    async def _sender(self, run: str, update: str) -> str:
        """Temporal tells a handler nothing of the caller; its history does."""
        info = activity.info()
        handle = self._client.get_workflow_handle(run, run_id=info.workflow_run_id)
        async for event in handle.fetch_history_events():
            accepted = event.workflow_execution_update_accepted_event_attributes.accepted_request.meta
            if update and accepted.update_id == update and accepted.identity:
                return accepted.identity
        return "temporal"


def _later(seconds: float, why: str) -> NoReturn:
    raise ApplicationError(
        why, type="Later", next_retry_delay=timedelta(seconds=seconds), category=ApplicationErrorCategory.BENIGN
    )


def _queue_of(task_queue: str) -> str:
    """The queue of runs that were started in Temporal on this task queue."""
    return task_queue.partition("@")[0].removeprefix(names.QUEUE).removeprefix("-")
