# expect: SF201
from datetime import date
import surefoot.aio as sf

@sf.step
async def f(d: str) -> str:
    return d

@sf.workflow
async def w(n: int) -> str:
    match n:
        case 1:
            if (today := date.today()).weekday() == 0:
                return await f(today.isoformat())
    return ""
