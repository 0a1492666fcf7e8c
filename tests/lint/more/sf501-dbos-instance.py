# expect: SF501
from datetime import datetime
from dbos import DBOS as D

@D.workflow()
def w() -> str:
    return datetime.now().isoformat()
