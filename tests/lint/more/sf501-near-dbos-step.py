# expect: none
import time
from dbos import DBOS

@DBOS.step()
def s() -> float:
    return time.time()

@DBOS.workflow()
def w() -> float:
    DBOS.sleep(3)
    return s()
