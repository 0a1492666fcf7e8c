# expect: SF103
class Poller:
    def __init__(self, bank):
        self.processed = set()
        self.bank = bank
    def poll(self, payments):
        for p in payments:
            if p.id not in self.processed:
                self.bank.transfer(p.to, p.amount)
                self.processed.add(p.id)
