# expect: none
import surefoot.aio as sf

@sf.step
async def f(n: int) -> int:
    return n

@sf.workflow
async def w() -> int:
    async with sf.timeout("10s"):
        return await f(1)
