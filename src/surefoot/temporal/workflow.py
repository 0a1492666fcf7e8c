"""The loop that Temporal runs for each run: drive it, show how it stands, wait for the time or the bell.

It keeps no state: everything that matters is in the journal. So any of its runs may be lost, reset or begun anew. It
imports the standard library, Temporal's and the names; changes of its commands go behind `workflow.patched`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError

from surefoot.temporal import names

_RETRIES: Final = RetryPolicy(initial_interval=names.FIRST_RETRY, maximum_interval=names.LONGEST_RETRY)
_KEYS: Final = {name: SearchAttributeKey.for_keyword(name) for name in names.ATTRIBUTES}
heartbeat = timedelta(seconds=names.HEARTBEAT_SECONDS)
"""Of this process's workers. No replay depends on it: Temporal does not compare times."""


@workflow.defn(dynamic=True)
class RunLoop:
    """One run. Its type is the name of surefoot's workflow, its id is the id of the run."""

    def __init__(self) -> None:
        self._rings = 0
        self._cancels = False
        """A request to cancel was written down since the drive began: it may have come too late for that drive."""
        self._shown: dict[str, str] = {}
        self._noted: Any = None

    @workflow.signal(name=names.BELL)
    def ring(self) -> None:
        """The run can go on: an answer, an event, the end of a child."""
        self._rings += 1

    @workflow.update(name=names.ANSWER)
    async def answer(self, said: dict[str, Any]) -> str:
        """What a person says of the run, as the object that the console sends."""
        info, update = workflow.info(), workflow.current_update_info()
        order = {"run": info.workflow_id, "said": said, "update": "" if update is None else update.id}
        try:
            return str(await self._brief(names.SAY, order))
        except ActivityError as error:
            raise error.cause or error from None

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> Any:
        order = _order(args)
        while True:
            heard, self._cancels = self._rings, False
            stand = await self._driven(order)
            order["first"] = False
            self._show(stand)
            if stand["ended"] and self._rings == heard:  # Else somebody has rewound it meanwhile.
                return _end(stand)
            if self._rings == heard and not self._cancels:
                await self._wait(heard, stand["wait"])
            if workflow.info().get_current_history_length() > names.MOST_EVENTS or self._rings > names.MOST_RINGS:
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(args=[{names.RUNG: True, "mirror": order["mirror"], "cell": order["cell"]}])

    async def _driven(self, order: dict[str, Any]) -> dict[str, Any]:
        """A request to cancel does not end the drive: it is written down, and the drive finds it."""
        drive = workflow.start_activity(
            names.DRIVE, order, start_to_close_timeout=names.LONGEST_DRIVE, heartbeat_timeout=heartbeat,
            retry_policy=_RETRIES,
        )  # fmt: skip
        while True:
            try:
                stand: dict[str, Any] = await asyncio.shield(drive)
            except asyncio.CancelledError:
                await self._cancelled(drive)
            else:
                return stand

    async def _wait(self, heard: int, seconds: float | None) -> None:
        try:
            await workflow.wait_condition(lambda: self._rings > heard, timeout=seconds)
        except TimeoutError:
            return
        except asyncio.CancelledError:
            await self._cancelled(None)

    async def _cancelled(self, drive: asyncio.Task[Any] | None) -> None:
        for _ in range(3):  # What came together with the request is handled first: the run may have ended.
            await asyncio.sleep(0)
        if drive is None or not drive.done():
            await self._brief(names.CANCEL, {"run": workflow.info().workflow_id})
            self._cancels = True

    async def _brief(self, activity: str, order: dict[str, Any]) -> Any:
        return await workflow.execute_activity(
            activity, order, task_queue=names.brief_queue(workflow.info().task_queue),
            start_to_close_timeout=names.LONGEST_SAY, retry_policy=_RETRIES,
        )  # fmt: skip

    def _show(self, stand: Mapping[str, Any]) -> None:
        """Only what has changed: each of these is an event."""
        shown = {names.STATUS: stand["status"], names.REASON: stand["reason"]}
        if stand["attributes"] and shown != self._shown:
            workflow.upsert_search_attributes([_KEYS[name].value_set(value) for name, value in shown.items()])
            self._shown = shown
        if stand["memo"] != self._noted and not stand["ended"]:
            workflow.upsert_memo({names.MEMO: stand["memo"]})
            self._noted = stand["memo"]
        workflow.set_current_details(stand["details"])


def _order(args: Sequence[RawValue]) -> dict[str, Any]:
    """What the drive is asked to do. The input of others is `{"args": […], "kwargs": {…}}`, or nothing."""
    info = workflow.info()
    given = workflow.payload_converter().from_payload(args[0].payload) if args else {}
    if len(args) > 1 or not isinstance(given, dict):
        raise ApplicationError(
            'the input is one object: {"args": […], "kwargs": {…}}', type="UsageError", non_retryable=True
        )
    return {
        "run": info.workflow_id,
        "workflow": info.workflow_type,
        names.RUNG: bool(given.get(names.RUNG)),
        "mirror": bool(given.get("mirror", not given.get(names.RUNG))),
        "args": list(given.get("args", ())),
        "kwargs": dict(given.get("kwargs", {})),
        "queue": info.task_queue,
        "cell": str(given.get("cell", "")),
        "first": True,
    }


def _end(stand: Mapping[str, Any]) -> Any:
    match stand["status"]:
        case "done":
            return stand["result"]
        case "cancelled":
            raise asyncio.CancelledError
        case _:
            raise ApplicationError(stand["message"], type=stand["type"], non_retryable=True)
