# expect: SF303
import httpx
import surefoot.aio as sf

@sf.effect(on_crash="retry")
async def pay(x: str) -> None:
    async with httpx.AsyncClient(base_url="https://b.test") as c:
        await c.post("/charges", json={"x": x})
