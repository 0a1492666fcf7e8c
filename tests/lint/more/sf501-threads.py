# expect: SF501
from concurrent.futures import ThreadPoolExecutor
from temporalio import workflow

@workflow.defn
class W:
    @workflow.run
    async def run(self) -> None:
        with ThreadPoolExecutor() as p:
            p.submit(print)
