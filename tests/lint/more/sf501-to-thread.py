# expect: SF501
import asyncio
from temporalio import workflow
@workflow.defn
class W:
    @workflow.run
    async def run(self) -> None:
        await asyncio.to_thread(print)
