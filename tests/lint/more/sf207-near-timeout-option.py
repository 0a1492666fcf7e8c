# expect: none
import surefoot.aio as sf
@sf.step(timeout="30s")
async def f(n: int) -> int:
    return n
@sf.workflow
async def w() -> int:
    return await f(1)
