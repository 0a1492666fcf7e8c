# expect: SF203
import sqlite3
import surefoot as sf

@sf.workflow
def w() -> int:
    with sqlite3.connect("x.db") as db:
        return db.execute("SELECT count(*) FROM t").fetchone()[0]
