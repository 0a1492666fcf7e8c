# expect: none
import time
from temporalio import workflow
@workflow.defn
class W:
    @workflow.run
    async def run(self) -> None:
        if not workflow.unsafe.is_replaying():
            metrics(time.time())
