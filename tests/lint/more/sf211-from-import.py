# expect: SF211
from surefoot import workflow, approve

@workflow
async def w(q: str) -> bool:
    return bool(approve(q))
