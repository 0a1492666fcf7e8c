# expect: SF106
import json, aiofiles

async def load_checkpoint(path):
    try:
        async with aiofiles.open(path) as f:
            return json.loads(await f.read())
    except Exception:
        return None
