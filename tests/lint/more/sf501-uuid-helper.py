# expect: SF501
import uuid
from temporalio import workflow

def new_id():
    return str(uuid.uuid4())

@workflow.defn
class W:
    @workflow.run
    async def run(self) -> str:
        return new_id()
