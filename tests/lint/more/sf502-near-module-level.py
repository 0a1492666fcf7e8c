# expect: none
import os
from temporalio import workflow

URL = os.environ["URL"]

@workflow.defn
class W:
    @workflow.run
    async def run(self) -> str:
        return URL
