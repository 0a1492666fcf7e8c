# expect: SF109
import aiofiles, json

async def save_state(path, s):
    async with aiofiles.open(path, "w") as f:
        await f.write(json.dumps(s))
