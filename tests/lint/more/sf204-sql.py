# expect: SF204
import sqlite3
import surefoot as sf

db = sqlite3.connect("x.db")

@sf.workflow
def w(n: int) -> None:
    db.execute("INSERT INTO t VALUES (?)", (n,))
