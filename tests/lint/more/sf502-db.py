# expect: SF502
import psycopg
from dbos import DBOS
@DBOS.workflow()
def w() -> int:
    with psycopg.connect("x") as c:
        return c.execute("SELECT 1").fetchone()[0]
