# expect: SF503
from temporalio import activity

class A:
    def __init__(self, bank):
        self.bank = bank
    @activity.defn
    async def pay(self, n: int) -> None:
        await self.bank.withdraw(n)
