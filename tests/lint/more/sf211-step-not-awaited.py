# expect: SF211
import surefoot.aio as sf

@sf.effect
async def e(n: int) -> int:
    return n

@sf.workflow
async def w(n: int) -> None:
    e(n)
