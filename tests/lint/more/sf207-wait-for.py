# expect: SF207
from asyncio import wait_for
import surefoot.aio as sf

@sf.step
async def f(n: int) -> int:
    return n

@sf.workflow
async def w() -> int:
    return await wait_for(f(1), timeout=3)
