# expect: none
import asyncio
import surefoot.aio as sf

@sf.step
async def f(n: int) -> int:
    return sum(await asyncio.gather(g(n), g(n)))

async def g(n: int) -> int:
    return n

@sf.workflow
async def w() -> int:
    return await f(1)
