# expect: SF101
class Worker:
    async def handle(self, order):
        try:
            async with self.db.transaction():
                await self.db.mark_shipped(order.id)
            await self.carrier.ship_order(order)
        except ValueError:
            raise
