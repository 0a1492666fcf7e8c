"""The bell: tells the workflow in Temporal that its run can go on, and begins that workflow where there is none.

One call in nearly all cases. A workflow that somebody has terminated is left alone: neither a ring nor the sweep begins
it again, only a person who resumes the run.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from msgspec import Struct
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from surefoot.temporal import names

RING_SECONDS: Final = 5.0


class Rung(Struct, frozen=True):
    """The run that can go on, and where its workflow belongs."""

    run: str
    workflow: str
    task_queue: str
    mirror: bool = False
    cell: str = ""


async def ring(client: Client, rung: Rung) -> None:
    """Wake the workflow; begin it, if there is none, unless it was terminated."""
    try:
        await _wake(client, rung, WorkflowIDReusePolicy.REJECT_DUPLICATE)
    except WorkflowAlreadyStartedError:
        if not await is_terminated(client, rung.run):
            await begin(client, rung)


async def begin(client: Client, rung: Rung) -> None:
    """The same, whatever has become of it before."""
    await _wake(client, rung, WorkflowIDReusePolicy.ALLOW_DUPLICATE)


async def look_after(client: Client, rung: Rung) -> bool:
    """Ring for a run that nobody has taken up for a while. False: it is on its way, or left alone."""
    try:
        found = await client.get_workflow_handle(rung.run).describe(rpc_timeout=_SOON)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    else:
        if found.status is WorkflowExecutionStatus.TERMINATED:
            return False
        raw: Any = found.raw_description
        if found.status is WorkflowExecutionStatus.RUNNING and (
            raw.pending_activities or raw.HasField("pending_workflow_task")
        ):
            return False
    await begin(client, rung)
    return True


async def is_terminated(client: Client, run: str) -> bool:
    found = await client.get_workflow_handle(run).describe(rpc_timeout=_SOON)
    return found.status is WorkflowExecutionStatus.TERMINATED


_SOON: Final = timedelta(seconds=RING_SECONDS)


async def _wake(client: Client, rung: Rung, again: WorkflowIDReusePolicy) -> None:
    given: dict[str, Any] = {names.RUNG: True}
    if rung.mirror:
        given["mirror"] = True
    if rung.cell:
        given["cell"] = rung.cell
    await client.start_workflow(
        rung.workflow,
        given,
        id=rung.run,
        task_queue=rung.task_queue,
        id_reuse_policy=again,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        start_signal=names.BELL,
        memo={"cell": rung.cell} if rung.cell else None,
        rpc_timeout=_SOON,
    )
