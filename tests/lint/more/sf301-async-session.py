# expect: SF301
import aiohttp
import surefoot.aio as sf

@sf.step
async def tell(x: str) -> None:
    async with aiohttp.ClientSession() as s:
        async with s.post("https://x.test/orders", json={"x": x}) as r:
            await r.text()
