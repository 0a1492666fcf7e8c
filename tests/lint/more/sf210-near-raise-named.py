# expect: none
import surefoot as sf

@sf.step
def f(n: str) -> str:
    return n

@sf.workflow
def w(n: str) -> str:
    try:
        return f(n)
    except BaseException as e:
        print(e)
        raise e
