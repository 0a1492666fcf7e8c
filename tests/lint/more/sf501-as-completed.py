# expect: SF501
import asyncio
from temporalio import workflow

@workflow.defn
class W:
    @workflow.run
    async def run(self, ts: list) -> None:
        for f in asyncio.as_completed(ts):
            await f
