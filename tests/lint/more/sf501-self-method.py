# expect: SF501
import random
from temporalio import workflow as wf

@wf.defn(name="x")
class W:
    def pick(self):
        return random.choice([1, 2])
    @wf.run
    async def run(self) -> int:
        return self.pick()
