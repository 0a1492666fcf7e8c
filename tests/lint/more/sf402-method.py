# expect: SF402
from langgraph import types

class N:
    def __init__(self, bank):
        self.bank = bank
    async def node(self, state):
        self.bank.charge(state["n"])
        ok = types.interrupt("?")
        return {"ok": ok}
