# expect: SF102
class W:
    async def run(self):
        n = 0
        while self.queue:
            item = self.queue.pop()
            await self.bank.charge(item)
            n += 1
            if not n % self.batch:
                await self._save_checkpoint()
