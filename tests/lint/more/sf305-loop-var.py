# expect: SF305
import surefoot as sf

@sf.step
def f(messages: list) -> int:
    for m in messages:
        m["seen"] = True
    return len(messages)
