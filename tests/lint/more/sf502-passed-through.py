# expect: SF502
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    import httpx

@workflow.defn
class W:
    @workflow.run
    async def run(self, u: str) -> str:
        async with httpx.AsyncClient() as c:
            return (await c.get(u)).text
