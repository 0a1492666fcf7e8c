# expect: none
import time
from temporalio import workflow

@workflow.defn
class W:
    @workflow.run
    async def run(self) -> None:
        workflow.logger.info("at %s", time.time())
