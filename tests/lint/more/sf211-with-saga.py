# expect: SF211
import surefoot.aio as sf

@sf.effect
async def e(n: int) -> int:
    return n

@e.undo
async def _(n: int, r: int) -> None: ...

@sf.workflow
async def w(n: int) -> None:
    with sf.saga():
        await e(n)
