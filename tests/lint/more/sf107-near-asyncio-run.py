# expect: none
import asyncio, uuid
import surefoot as sf
async def main(x):
    return x
asyncio.run(main(str(uuid.uuid4())))
