"""How many runs a worker drives at once, over all of its task queues.

A poll that is open has no run yet, and takes no room: else a worker of many queues would poll only the first few.
"""

from __future__ import annotations

import asyncio
from typing import Final

from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    WorkerTuner,
)

WORKFLOW_TASKS: Final = 20
"""Each is a few milliseconds of the loop."""


class Slots(CustomSlotSupplier):
    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._used = 0
        self._room = asyncio.Event()
        self._room.set()

    def tuner(self) -> WorkerTuner:
        few = FixedSizeSlotSupplier(1)
        return WorkerTuner.create_composite(
            workflow_supplier=FixedSizeSlotSupplier(WORKFLOW_TASKS), activity_supplier=self,
            local_activity_supplier=few, nexus_supplier=few,
        )  # fmt: skip

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        await self._room.wait()
        return SlotPermit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        return SlotPermit() if self._room.is_set() else None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        self._used += 1
        if self._used >= self._concurrency:
            self._room.clear()

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        if ctx.slot_info is not None:  # It was used.
            self._used -= 1
            if self._used < self._concurrency:
                self._room.set()
