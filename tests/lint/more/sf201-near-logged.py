# expect: none
import time, logging
import surefoot as sf

log = logging.getLogger(__name__)

@sf.step
def f(n: int) -> int:
    return n

@sf.workflow
def w() -> int:
    begin = time.perf_counter()
    n = f(1)
    log.info("took %.1f", time.perf_counter() - begin)
    return n
