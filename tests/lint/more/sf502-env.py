# expect: SF502
import os
from temporalio import workflow

@workflow.defn
class W:
    @workflow.run
    async def run(self) -> str:
        return os.environ.get("X", "")
