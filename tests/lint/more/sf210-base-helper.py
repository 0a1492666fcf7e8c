# expect: SF210
import surefoot as sf

@sf.effect
def e(n: str) -> str:
    return n

def safe(n):
    try:
        return e(n)
    except BaseException as error:
        return str(error)

@sf.workflow
def w(n: str) -> str:
    return safe(n)
