# expect: SF503
import httpx
from temporalio import activity

async def post(x):
    async with httpx.AsyncClient() as c:
        return await c.post("https://x.test/orders", json=x)

@activity.defn
async def order(x: dict) -> None:
    await post(x)
