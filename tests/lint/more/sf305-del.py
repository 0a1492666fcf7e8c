# expect: SF305
import surefoot.aio as sf

@sf.step
async def f(d: dict) -> int:
    del d["x"]
    return 1
