# expect: SF112
class Pay:
    def go(self, card, amount):
        retries = 3
        while retries > 0:
            try:
                return self.gateway.charge(card, amount)
            except TimeoutError:
                retries -= 1
