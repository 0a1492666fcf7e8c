# expect: SF209
import surefoot.aio as sf
@sf.step
async def f(n: str) -> str:
    return n
@sf.workflow
async def w(a: list) -> list:
    return await sf.gather(*(f(x) for x in set(a)))
