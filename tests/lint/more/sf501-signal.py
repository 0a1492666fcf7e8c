# expect: SF501
import time
from temporalio import workflow

@workflow.defn
class W:
    @workflow.run
    async def run(self) -> None: ...
    @workflow.signal
    async def tick(self) -> None:
        self.at = time.time()
