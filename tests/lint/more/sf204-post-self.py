# expect: SF204
import httpx
import surefoot.aio as sf

class Agent:
    def __init__(self):
        self.client = httpx.AsyncClient()
    async def tell(self, x):
        await self.client.post("https://x.test/orders", json=x)
    @sf.workflow
    async def run(self, x: int) -> None:
        await self.tell(x)
