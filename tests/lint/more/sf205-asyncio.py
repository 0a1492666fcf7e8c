# expect: SF205
import asyncio
import surefoot.aio as sf

@sf.workflow
async def w() -> None:
    await asyncio.sleep(5)
