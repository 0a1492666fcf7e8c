# expect: SF107
import secrets
import surefoot.aio as sf

@sf.workflow
async def go() -> int:
    return 1

def new_id():
    return "r-" + secrets.token_hex(4)

async def main():
    await go.run(new_id())
