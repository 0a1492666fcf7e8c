# expect: none
import surefoot as sf

@sf.workflow
async def w() -> str:
    sf.progress(1, 2)
    with sf.scope("x"):
        return f"{sf.now()} {sf.uuid4()}"
