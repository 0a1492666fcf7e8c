# expect: SF209
import surefoot.aio as sf

@sf.effect
async def e(n: str) -> None: ...

@sf.workflow
async def w(names: frozenset[str]) -> None:
    for n in names:
        await e(n)
