# expect: SF211
import surefoot as sf

def pause():
    sf.sleep("1m")

@sf.workflow
async def w() -> None:
    pause()
