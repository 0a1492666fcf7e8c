# expect: SF203
import httpx
import surefoot.aio as sf

@sf.workflow
async def w(u: str) -> str:
    async with httpx.AsyncClient() as c:
        r = await c.get(u)
    return r.text
