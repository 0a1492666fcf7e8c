# expect: SF501
import time
from dbos import DBOS

@DBOS.workflow()
def w() -> None:
    time.sleep(3)
