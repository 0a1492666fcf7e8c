# expect: none
from temporalio import workflow

@workflow.defn
class W:
    @workflow.run
    async def run(self) -> str:
        return f"{workflow.now()} {workflow.uuid4()} {workflow.random().random()}"
