# expect: SF501
from datetime import datetime
from temporalio import workflow
@workflow.defn
class W:
    @workflow.run
    async def run(self) -> None: ...
    @workflow.update
    async def set(self, n: int) -> str:
        return datetime.utcnow().isoformat()
