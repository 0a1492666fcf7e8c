# expect: SF206
import asyncio
import surefoot.aio as sf
@sf.step
async def f(n: int) -> int:
    return n
@sf.workflow
async def w() -> int:
    task = asyncio.get_running_loop().create_task(f(1))
    return await task
