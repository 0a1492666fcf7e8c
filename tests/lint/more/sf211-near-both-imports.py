# expect: none
import surefoot as sf
import surefoot.aio as aio

@sf.workflow
def w() -> None:
    sf.sleep("1m")

@aio.workflow
async def v() -> None:
    await aio.sleep("1m")
