# expect: none
import surefoot.aio as sf

@sf.step
async def f(n: int) -> int:
    return n

@sf.workflow
async def w() -> list:
    a = f(1)
    b = f(2)
    return await sf.gather(a, b)
