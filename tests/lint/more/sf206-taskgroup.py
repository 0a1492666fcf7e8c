# expect: SF206
import asyncio
import surefoot.aio as sf

@sf.step
async def f(n: int) -> int:
    return n

@sf.workflow
async def w() -> None:
    async with asyncio.TaskGroup() as tg:
        tg.create_task(f(1))
