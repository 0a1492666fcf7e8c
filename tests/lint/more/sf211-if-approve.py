# expect: SF211
from surefoot import aio

@aio.workflow
async def w(n: int) -> bool:
    if aio.approve("go?"):
        return True
    return False
