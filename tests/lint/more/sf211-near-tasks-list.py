# expect: none
import surefoot.aio as sf

@sf.step
async def f(n: int) -> int:
    return n

@sf.workflow
async def w(ns: list) -> list:
    return await sf.gather(*[f(n) for n in ns])
