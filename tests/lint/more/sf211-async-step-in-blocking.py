# expect: SF211
import surefoot as sf

@sf.step
async def f(n: int) -> int:
    return n

@sf.workflow
def w(n: int) -> int:
    return f(n)
