# expect: SF110
import logging

log = logging.getLogger(__name__)

class R:
    async def step(self, s):
        try:
            await self.checkpointer.put(s)
        except Exception:
            log.warning("could not save")
