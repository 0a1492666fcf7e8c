# expect: none
import asyncio
from datetime import timedelta
from temporalio import workflow

@workflow.defn
class W:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: True, timeout=timedelta(days=1))
        t = asyncio.create_task(self.x())
        await t
    async def x(self): ...
