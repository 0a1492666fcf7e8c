# expect: SF302
import surefoot.aio as sf

@sf.step
async def f(q: str) -> str:
    return await sf.ask(q, type=str)
