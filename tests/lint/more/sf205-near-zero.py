# expect: none
import asyncio
import surefoot.aio as sf

@sf.workflow
async def w() -> None:
    await asyncio.sleep(0)
