# expect: none
import time
import surefoot as sf

@sf.workflow
def w() -> int:
    begin = time.monotonic()
    elapsed = time.monotonic() - begin
    print(f"took {elapsed:.2f}")
    return 1
