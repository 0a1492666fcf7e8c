# expect: SF306
import surefoot.aio as sf
@sf.effect
async def a(n: int) -> None: ...
@a.undo
async def _(n: int, r: None) -> None: ...
@sf.effect
async def b(n: int) -> None: ...
@sf.workflow
async def w() -> None:
    async with sf.saga():
        await sf.gather(a(1), b(2))
