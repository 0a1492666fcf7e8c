"""The task queues that a worker polls, each with the settings that were measured.

No workflow is cached: a sticky queue makes others wait ten seconds for a dead worker, and histories are short. One poll
for activities is open on each queue: a frozen worker swallows one attempt with each.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from surefoot.temporal import names, workflow
from surefoot.temporal.address import Address
from surefoot.temporal.slots import Slots

if TYPE_CHECKING:
    from temporalio.client import Client

    from surefoot.temporal.activities import Activities


class Polls:
    def __init__(self, client: Client, activities: Activities, address: Address, cell: str, concurrency: int) -> None:
        self._client, self._activities, self._address, self._cell = client, activities, address, cell
        self._slots = Slots(concurrency)
        self._workers: dict[str, asyncio.Task[None]] = {}
        workflow.heartbeat = timedelta(seconds=address.heartbeat_seconds)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """Each ends when it is cancelled, or with what went wrong."""
        return list(self._workers.values())

    def add(self, queue: str) -> None:
        """From now on this queue is polled, too."""
        if queue not in self._workers:
            task_queue = names.task_queue(queue, self._cell)
            both = _both(self._driving(task_queue), self._hearing(task_queue))
            self._workers[queue] = asyncio.create_task(both, name=f"surefoot-{task_queue}")

    def _driving(self, task_queue: str) -> Worker:
        throttle = timedelta(seconds=self._address.heartbeat_seconds / 2)
        return Worker(
            self._client, task_queue=task_queue, workflows=[workflow.RunLoop], activities=[self._activities.drive],
            workflow_runner=UnsandboxedWorkflowRunner(),  # The loop is ours; user code is never in it.
            max_cached_workflows=0, max_concurrent_workflow_task_polls=1,
            max_concurrent_activity_task_polls=self._address.polls, tuner=self._slots.tuner(),
            max_heartbeat_throttle_interval=throttle, default_heartbeat_throttle_interval=throttle,
        )  # fmt: skip

    def _hearing(self, task_queue: str) -> Worker:
        activities = [self._activities.cancel, self._activities.say]
        return Worker(
            self._client, task_queue=names.brief_queue(task_queue), activities=activities,
            max_concurrent_activity_task_polls=1, graceful_shutdown_timeout=timedelta(seconds=1),
        )  # fmt: skip


async def _both(driving: Worker, hearing: Worker) -> None:
    """What is said of runs has polls of its own: it must not wait until a run has ended."""
    async with hearing:
        await driving.run()
