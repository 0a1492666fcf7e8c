# expect: SF210
import surefoot.aio as sf

@sf.workflow
async def w(n: str) -> bool:
    try:
        return bool(await sf.approve(n))
    except:
        return False
